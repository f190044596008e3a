// The planned graph: who gives what to whom. No DOM.

// index → the entries of a CSR, reversed: for pairs (row, column) the rows by column.
function reversed(ptr, idx, count) {
  const at = new Int32Array(count + 1);
  for (const column of idx) at[column + 1]++;
  for (let i = 0; i < count; i++) at[i + 1] += at[i];
  const rows = new Int32Array(idx.length), next = at.slice();
  for (let row = 0; row + 1 < ptr.length; row++) {
    for (let k = ptr[row]; k < ptr[row + 1]; k++) rows[next[idx[k]]++] = row;
  }
  return {ptr: at, idx: rows};
}

export class Graph {
  // arrays: of graph.bin; without edges where the plan has none to tell.
  constructor(arrays) {
    this.arrays = arrays;
    this.hasEdges = Boolean(arrays.producer);
    this.cache = {};
  }

  get count() {
    return this.arrays.type.length;
  }

  // [{op, bytes, kind}], kind "data" or "control": what the op waits for.
  predecessors(op) {
    if (!this.hasEdges) return [];
    const {producer, size, input_ptr, input_idx, control_ptr, control_idx} = this.arrays;
    const found = [];
    for (let k = input_ptr[op]; k < input_ptr[op + 1]; k++) found.push({op: producer[input_idx[k]], bytes: size[input_idx[k]], kind: "data"});
    for (let k = control_ptr[op]; k < control_ptr[op + 1]; k++) found.push({op: control_idx[k], bytes: 0, kind: "control"});
    return found.concat(this.added("added_after", "added_before", op));
  }

  // The same for what waits for the op.
  successors(op) {
    if (!this.hasEdges) return [];
    const {size, control_ptr, control_idx} = this.arrays;
    this.cache.followers ??= reversed(control_ptr, control_idx, this.count);
    const found = [];
    for (const tensor of this.outputs(op)) {
      for (const consumer of this.consumers(tensor)) found.push({op: consumer, bytes: size[tensor], kind: "data"});
    }
    const {ptr, idx} = this.cache.followers;
    for (let k = ptr[op]; k < ptr[op + 1]; k++) found.push({op: idx[k], bytes: 0, kind: "control"});
    return found.concat(this.added("added_before", "added_after", op));
  }

  // Ops that take a tensor.
  consumers(tensor) {
    const {producer, input_ptr, input_idx} = this.arrays;
    this.cache.consumers ??= reversed(input_ptr, input_idx, producer.length);
    const {ptr, idx} = this.cache.consumers;
    return idx.subarray(ptr[tensor], ptr[tensor + 1]);
  }

  added(mine, others, op) {
    const found = [];
    this.arrays[mine].forEach((at, k) => {
      if (at === op) found.push({op: this.arrays[others][k], bytes: 0, kind: "added"});
    });
    return found;
  }

  // Tensors that the op makes.
  outputs(op) {
    const {producer} = this.arrays;
    if (!this.cache.outputs) {
      const ptr = Int32Array.from({length: producer.length + 1}, (_, i) => i);
      this.cache.outputs = reversed(ptr, producer, this.count);
    }
    const {ptr, idx} = this.cache.outputs;
    return idx.subarray(ptr[op], ptr[op + 1]);
  }

  outputBytes(op) {
    if (!this.hasEdges) return 0;
    return this.outputs(op).reduce((sum, tensor) => sum + this.arrays.size[tensor], 0);
  }
}

// Int32Array of the ops whose name or type holds the text, whatever its case.
export function matches(names, types, typeOf, text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return new Int32Array(0);
  const byType = types.map((type) => type.toLowerCase().includes(wanted));
  const found = [];
  for (let op = 0; op < names.length; op++) {
    if (byType[typeOf[op]] || names[op].toLowerCase().includes(wanted)) found.push(op);
  }
  return Int32Array.from(found);
}

// The first parts of a name that tell one layer from another: "tower_0/dense_1/MatMul" → "tower_0/dense_1".
export function layerOf(name) {
  const at = name.lastIndexOf("/");
  return at < 0 ? "" : name.slice(0, at).split("/").slice(0, 3).join("/");
}

// {labels, of: Int32Array [ops]}: the layers by their first op.
export function layers(names) {
  const numbers = new Map(), of = new Int32Array(names.length);
  names.forEach((name, op) => {
    const layer = layerOf(name);
    if (!numbers.has(layer)) numbers.set(layer, numbers.size);
    of[op] = numbers.get(layer);
  });
  return {labels: [...numbers.keys()], of};
}
