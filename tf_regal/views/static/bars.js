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

// The same bars coarsely, for views in which a pixel is wider than `total / pieces`: {start, end, bar} of what is drawn on so many pixels.
export function coarse(start, end, lo, hi, total, pieces) {
  const found = [];
  draw(start, end, lo, hi, {from: 0, to: total}, pieces, (x, width, bar) => found.push([x, width, bar]));
  const piece = total / pieces;
  return {
    start: Float64Array.from(found, ([x]) => x * piece), end: Float64Array.from(found, ([x, width]) => (x + width) * piece),
    bar: Int32Array.from(found, ([, , bar]) => bar),
  };
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

// A step curve ([lo, hi) of values that hold from a time on) on `pixels` pixels: {initial: its value at the left edge, found: [[x, lowest, highest, last]] of each
// pixel in which it changes}. What lies between the lowest and the highest of a pixel cannot be seen.
export function steps(times, values, lo, hi, view, pixels, before) {
  const scale = pixels / (view.to - view.from), first = above(times, lo, hi, view.from);
  const found = [];
  let now = null;
  for (let i = first; i < hi; i++) {
    const x = Math.floor((times[i] - view.from) * scale);
    if (x > pixels) break;
    if (now && now[0] === x) {
      if (values[i] < now[1]) now[1] = values[i];
      if (values[i] > now[2]) now[2] = values[i];
      now[3] = values[i];
    } else {
      now = [x, values[i], values[i], values[i]];
      found.push(now);
    }
  }
  return {initial: first > lo ? values[first - 1] : before, found};
}
