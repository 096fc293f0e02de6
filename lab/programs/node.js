// node.js ROUNDS: the native side of Node.js, whose memory comes from malloc: buffers, compression,
// text conversion, hashes and big numbers. A checksum of the results is printed. The numbers come
// from a fixed pseudo-random sequence.
'use strict';

const crypto = require('node:crypto');
const zlib = require('node:zlib');

let state = 20n;

function random(below) {
  state = (state * 69069n + 12345n) % 4294967296n;
  return Number(state / 65536n) % below;
}

function makeRecords(count) {
  return Array.from({ length: count }, (_, number) => ({
    id: number,
    name: 'record-' + random(1000) + 'ä'.repeat(random(30)),
    tags: Array.from({ length: random(6) }, () => 'tag' + random(64)),
  }));
}

function pack(records) {
  const texts = records.map((record) => Buffer.from(JSON.stringify(record)));
  return texts.map((text) => zlib.deflateRawSync(text, { level: 1 }));
}

const total = crypto.createHash('sha256');
for (let round = 0; round < Number(process.argv[2]); round++) {
  const packed = pack(makeRecords(200));
  const text = packed.map((buffer) => zlib.inflateRawSync(buffer).toString('utf8')).join('\n');
  const wide = Buffer.from(text, 'utf16le');
  const parts = [];
  for (let start = 0; start < wide.length; start += 8192) {
    // Above the pool of Node.js, so that each one is a block of its own.
    parts.push(Buffer.alloc(8192 + random(8192), wide.subarray(start, start + 8192)));
  }
  const compressed = zlib.brotliCompressSync(Buffer.concat(parts), {
    params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 },
  });
  total.update(zlib.brotliDecompressSync(compressed));
  for (const buffer of packed) {
    total.update(crypto.createHmac('sha256', buffer).update(buffer).digest());
  }
}
console.log('checksum ' + total.digest('hex'));
