// Where plans come from: TensorBoard's routes, or this page itself. Both give the same pieces (views/chunks.py).

const TYPES = {f64: Float64Array, f32: Float32Array, i32: Int32Array, u16: Uint16Array, u8: Uint8Array};

// {name: typed array} of a .bin piece (an ArrayBuffer).
export function unpack(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const arrays = {};
  for (const [name, dtype, count, offset] of header.arrays) arrays[name] = new TYPES[dtype](buffer, 4 + length + offset, count);
  return arrays;
}

function decoded(name, buffer) {
  return name.endsWith(".json") ? JSON.parse(new TextDecoder().decode(buffer)) : unpack(buffer);
}

async function fetched(path) {
  const response = await fetch(path);
  if (response.ok) return response;
  let reason = `HTTP status ${response.status}`;
  try {
    reason = (await response.json()).error || reason;
  } catch {
    // Not ours: the status says it.
  }
  throw new Error(reason);
}

export class ServerData {
  constructor(base = "./") {
    this.base = base;
  }

  async plans() {
    return (await fetched(`${this.base}plans`)).json();
  }

  async piece(id, name) {
    const response = await fetched(`${this.base}piece?${new URLSearchParams({id, name})}`);
    return decoded(name, await response.arrayBuffer());
  }

  download(id, what) {
    return `${this.base}download?${new URLSearchParams({id, what})}`;
  }
}

export class EmbeddedData {
  // content: {"plans": […], "pieces": {id: {name: base64}}}
  constructor(content) {
    this.content = content;
    this.isSingle = content.plans.length === 1;
  }

  async plans() {
    return {plans: this.content.plans, problems: []};
  }

  async piece(id, name) {
    const text = atob(this.content.pieces[id][name]);
    const bytes = new Uint8Array(text.length); // a loop: twenty times as fast as Uint8Array.from
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    return decoded(name, bytes.buffer);
  }

  download() {
    return null;
  }
}
