import { inflateSync } from 'node:zlib'

export interface Png {
  readonly width: number
  readonly height: number
  /** Bytes per pixel. */
  readonly channels: number
  /** The pixels, row by row. Absent for unsupported formats and large images. */
  readonly pixels?: Buffer
}

const SIGNATURE = '89504e470d0a1a0a'
/** The limit for decompression, which blocks the event loop. */
const MAX_PIXELS = 250_000
/** Bytes per pixel by colour type: grey, RGB, grey with alpha, RGBA. Palettes are not supported. */
const CHANNELS: Readonly<Record<number, number>> = { 0: 1, 2: 3, 4: 2, 6: 4 }

/** Reads a PNG. Returns undefined for other files. Throws if the PNG is invalid. */
export function readPng(file: Buffer): Png | undefined {
  if (file.toString('hex', 0, 8) !== SIGNATURE) return undefined
  const size = { width: file.readUInt32BE(16), height: file.readUInt32BE(20) }
  // Invalid, and an image without width could have billions of rows.
  if (size.width === 0 || size.height === 0) throw new RangeError('A picture without an extent.')
  const channels = CHANNELS[file[25] ?? -1] ?? 0
  const isSimple = file[24] === 8 && file[28] === 0 && channels > 0
  if (!isSimple || size.width * size.height > MAX_PIXELS) return { ...size, channels }
  const rowLength = size.width * channels
  const maxOutputLength = (rowLength + 1) * size.height
  const rows = inflateSync(dataOf(file), { maxOutputLength })
  return { ...size, channels, pixels: unfilter(rows, rowLength, channels) }
}

function dataOf(file: Buffer): Buffer {
  const pieces: Buffer[] = []
  for (let at = 8; at + 8 <= file.length;) {
    const length = file.readUInt32BE(at)
    if (file.toString('latin1', at + 4, at + 8) === 'IDAT')
      pieces.push(file.subarray(at + 8, at + 8 + length))
    at += length + 12
  }
  return Buffer.concat(pieces)
}

/** Reverses the row filters: each byte is stored as the difference to a prediction from its neighbours. */
function unfilter(rows: Buffer, rowLength: number, pixel: number): Buffer {
  const count = Math.floor(rows.length / (rowLength + 1))
  const pixels = Buffer.alloc(count * rowLength)
  // Bytes outside the image count as zero.
  let above: Buffer = Buffer.alloc(rowLength)
  for (let row = 0; row < count; row += 1) {
    const stored = rows.subarray(row * (rowLength + 1), (row + 1) * (rowLength + 1))
    const current = pixels.subarray(row * rowLength, (row + 1) * rowLength)
    const filter = stored[0] ?? 0
    for (let x = 0; x < rowLength; x += 1) {
      const left = current[x - pixel] ?? 0
      const guess = guessFrom(filter, left, above[x] ?? 0, above[x - pixel] ?? 0)
      current[x] = (stored[x + 1] ?? 0) + guess
    }
    above = current
  }
  return pixels
}

// Separate parameters instead of a tuple, because this runs for every byte.
// oxlint-disable-next-line max-params
function guessFrom(filter: number, left: number, up: number, corner: number): number {
  switch (filter) {
    case 1:
      return left
    case 2:
      return up
    case 3:
      return (left + up) >> 1
    case 4:
      return nearest(left, up, corner)
    default:
      return 0
  }
}

/** The Paeth predictor: the neighbour that is nearest to left + up − upper left. */
function nearest(left: number, up: number, corner: number): number {
  const toLeft = Math.abs(up - corner)
  const toUp = Math.abs(left - corner)
  const toCorner = Math.abs(left + up - 2 * corner)
  if (toLeft <= toUp && toLeft <= toCorner) return left
  return toUp <= toCorner ? up : corner
}
