// Bars of one row, sorted by start and not overlapping: what is visible, what is drawn, what is under the pointer. No DOM.

// First index in [lo, hi) with values[index] > at.
export function above(values, lo, hi, at) {
  while (lo < hi) {
    const middle = (lo + hi) >> 1;
    if (values[middle] > at) hi = middle;
    else lo = middle + 1;
  }
  return lo;
}

// [first, last) of the bars of [lo, hi) that reach into [from, to].
export function visible(start, end, lo, hi, from, to) {
  const first = above(end, lo, hi, from);
  return [first, Math.max(first, above(start, lo, hi, to))];
}

// Calls emit(x, width, bar) for what is drawn of a row on `pixels` pixels; bars narrower than a pixel that share one are drawn as one, as the longest of them.
export function draw(start, end, lo, hi, view, pixels, emit) {
  const scale = pixels / (view.to - view.from);
  const [first, last] = visible(start, end, lo, hi, view.from, view.to);
  let x = -1, right = -1, bar = -1, longest = -1;
  for (let i = first; i < last; i++) {
    const length = end[i] - start[i];
    const a = (start[i] - view.from) * scale, b = (end[i] - view.from) * scale;
    if (b - a >= 1) {
      if (bar >= 0) emit(x, right - x, bar);
      bar = -1;
      const left = Math.max(a, 0);
      emit(left, Math.min(b, pixels) - left, i);
      continue;
    }
    const pixel = Math.floor(a);
    if (bar >= 0 && pixel < right) {
      if (length > longest) [bar, longest] = [i, length];
      continue;
    }
    if (bar >= 0) emit(x, right - x, bar);
    [x, right, bar, longest] = [Math.max(pixel, 0), Math.max(pixel, 0) + 1, i, length];
  }
  if (bar >= 0) emit(x, right - x, bar);
}

// The bar of [lo, hi) at the time `at`, or the nearest one within `reach`; −1: none.
export function hit(start, end, lo, hi, at, reach) {
  const next = above(start, lo, hi, at);
  let best = -1, distance = reach;
  for (let i = Math.max(lo, next - 1); i < Math.min(hi, next + 1); i++) {
    const away = at < start[i] ? start[i] - at : at > end[i] ? at - end[i] : 0;
    if (away <= distance) [best, distance] = [i, away];
  }
  return best;
}
