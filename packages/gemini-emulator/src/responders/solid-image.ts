import { crc32, deflateSync } from 'node:zlib'

/** Returns a 16 × 16 PNG of one colour as base64, or `undefined` if the colour is neither `#rrggbb` nor a known name. */
export function solidImage(colour: string): string | undefined {
  const hex = COLOURS[colour.toLowerCase()] ?? /^#([0-9a-f]{6})$/i.exec(colour)?.[1]
  if (hex === undefined) return undefined
  const pixel = Buffer.from(hex, 'hex')
  // Each row starts with its filter type. 0 means none.
  const row = Buffer.concat([Buffer.of(0), ...Array<Buffer>(SIZE).fill(pixel)])
  const rows = Buffer.concat(Array<Buffer>(SIZE).fill(row))
  const header = Buffer.alloc(13)
  header.writeUInt32BE(SIZE, 0)
  header.writeUInt32BE(SIZE, 4)
  // Eight bits for each of red, green and blue.
  header.set([8, 2], 8)
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(rows)),
    chunk('IEND', Buffer.alloc(0)),
  ]).toString('base64')
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const frame = Buffer.alloc(body.length + 8)
  frame.writeUInt32BE(data.length, 0)
  frame.set(body, 4)
  frame.writeUInt32BE(crc32(body), body.length + 4)
  return frame
}

const SIZE = 16
const SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex')

const COLOURS: Readonly<Record<string, string>> = {
  black: '000000',
  white: 'ffffff',
  gray: '808080',
  red: 'ff0000',
  green: '008000',
  blue: '0000ff',
  yellow: 'ffff00',
  orange: 'ffa500',
  purple: '800080',
}
