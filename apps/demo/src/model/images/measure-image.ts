import { inflateSync } from 'node:zlib'

import type { Language } from '../../demo-info.ts'

/** The dimensions of an image and, for a simple PNG, its main colour. */
export interface ImageInfo {
  readonly width: number
  readonly height: number
  readonly colour?: ColourName
}

/** Measures an image. Returns undefined if the file is not an image of a supported format. */
export function measureImage(file: Buffer): ImageInfo | undefined {
  try {
    return measurePng(file) ?? sizeOfGif(file) ?? sizeOfWebp(file) ?? sizeOfJpeg(file)
  } catch {
    // The file is truncated or inconsistent.
    return undefined
  }
}

export function nameColour(colour: ColourName, language: Language): string {
  return language === 'ja' ? COLOURS[colour] : colour
}

const COLOURS = {
  black: '黒',
  white: '白',
  grey: '灰色',
  red: '赤',
  orange: 'オレンジ',
  yellow: '黄色',
  green: '緑',
  blue: '青',
  purple: '紫',
  pink: 'ピンク',
} as const
type ColourName = keyof typeof COLOURS

function measurePng(file: Buffer): ImageInfo | undefined {
  const png = readPng(file)
  if (!png) return undefined
  const { width, height, pixels, channels } = png
  return { width, height, ...(pixels && { colour: mainColourOf(pixels, channels) }) }
}

function mainColourOf(pixels: Buffer, channels: number): ColourName {
  const counts = new Map<ColourName, number>()
  // A sample of some thousand pixels is sufficient.
  const step = Math.max(1, Math.floor(pixels.length / channels / 4_096)) * channels
  for (let at = 0; at + channels <= pixels.length; at += step) {
    const grey = channels < 3
    const [red = 0, green = 0, blue = 0] = pixels.subarray(at, at + 3)
    const name = grey ? colourOf(red, red, red) : colourOf(red, green, blue)
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  const [most] = [...counts].toSorted(([, one], [, other]) => other - one)
  return most?.[0] ?? 'white'
}

const HUES: readonly (readonly [upTo: number, name: ColourName])[] = [
  [15, 'red'],
  [40, 'orange'],
  [70, 'yellow'],
  [165, 'green'],
  [255, 'blue'],
  [315, 'purple'],
  [340, 'pink'],
  [361, 'red'],
]

function colourOf(red: number, green: number, blue: number): ColourName {
  const [most, least] = [Math.max(red, green, blue), Math.min(red, green, blue)]
  if (most < 45) return 'black'
  if (most - least < 30) return most > 215 ? 'white' : 'grey'
  const hue = hueOf(red, green, blue)
  return HUES.find(([upTo]) => hue < upTo)?.[1] ?? 'red'
}

/** The hue in degrees. */
function hueOf(red: number, green: number, blue: number): number {
  const most = Math.max(red, green, blue)
  const span = most - Math.min(red, green, blue)
  if (most === red) return (((green - blue) / span) * 60 + 360) % 360
  return most === green ? (2 + (blue - red) / span) * 60 : (4 + (red - green) / span) * 60
}

function sizeOfGif(file: Buffer): ImageInfo | undefined {
  if (!/^GIF8[79]a/.test(file.toString('latin1', 0, 6))) return undefined
  return { width: file.readUInt16LE(6), height: file.readUInt16LE(8) }
}

function sizeOfWebp(file: Buffer): ImageInfo | undefined {
  if (!/^RIFF[^]{4}WEBP/.test(file.toString('latin1', 0, 12))) return undefined
  const kind = file.toString('latin1', 12, 16)
  if (kind === 'VP8X')
    return { width: file.readUIntLE(24, 3) + 1, height: file.readUIntLE(27, 3) + 1 }
  if (kind === 'VP8L') {
    const bits = file.readUInt32LE(21)
    return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 }
  }
  return { width: file.readUInt16LE(26) & 0x3fff, height: file.readUInt16LE(28) & 0x3fff }
}

function sizeOfJpeg(file: Buffer): ImageInfo | undefined {
  if (file[0] !== 0xff || file[1] !== 0xd8) return undefined
  for (let at = 2; at + 9 < file.length;) {
    const marker = file[at + 1] ?? 0
    // The frame header has the size. C4, C8 and CC are other markers in the same range.
    if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker))
      return { width: file.readUInt16BE(at + 7), height: file.readUInt16BE(at + 5) }
    at += 2 + file.readUInt16BE(at + 2)
  }
  return undefined
}

interface Png {
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
function readPng(file: Buffer): Png | undefined {
  if (file.toString('hex', 0, 8) !== SIGNATURE) return undefined
  const size = { width: file.readUInt32BE(16), height: file.readUInt32BE(20) }
  // Invalid, and an image without width could have billions of rows.
  if (size.width === 0 || size.height === 0)
    throw new RangeError('The image has no width or no height.')
  const channels = CHANNELS[file[25] ?? -1] ?? 0
  const isSimple = file[24] === 8 && file[28] === 0 && channels > 0
  if (!isSimple || size.width * size.height > MAX_PIXELS) return { ...size, channels }
  const rowLength = size.width * channels
  const maxOutputLength = (rowLength + 1) * size.height
  const rows = inflateSync(readImageData(file), { maxOutputLength })
  return { ...size, channels, pixels: unfilter(rows, rowLength, channels) }
}

function readImageData(file: Buffer): Buffer {
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
      const predicted = predict(filter, left, above[x] ?? 0, above[x - pixel] ?? 0)
      current[x] = (stored[x + 1] ?? 0) + predicted
    }
    above = current
  }
  return pixels
}

/** Predicts a byte from its neighbours, with the filter of its row. */
function predict(filter: number, left: number, up: number, corner: number): number {
  switch (filter) {
    case 1:
      return left
    case 2:
      return up
    case 3:
      return (left + up) >> 1
    case 4:
      return paeth(left, up, corner)
    default:
      return 0
  }
}

/** The Paeth predictor of PNG: the neighbour that is nearest to left + up − upper left. */
function paeth(left: number, up: number, corner: number): number {
  const toLeft = Math.abs(up - corner)
  const toUp = Math.abs(left - corner)
  const toCorner = Math.abs(left + up - 2 * corner)
  if (toLeft <= toUp && toLeft <= toCorner) return left
  return toUp <= toCorner ? up : corner
}
