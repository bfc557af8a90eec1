import { crc32, deflateSync } from 'node:zlib'

/** Draws a gradient with a disc, in colours derived from the subject. Returns a PNG in base64. */
export function drawPicture(subject: string): string {
  const seed = hash(subject)
  const top = colour(seed % 360, 0.45)
  const bottom = colour((seed >>> 9) % 360, 0.7)
  const disc = colour((seed >>> 18) % 360, 0.85)
  const centre = {
    x: WIDTH * (0.25 + ((seed >>> 5) % 50) / 100),
    y: HEIGHT * 0.4,
    radius: HEIGHT * 0.22,
  }
  const rows = Buffer.alloc(HEIGHT * (1 + WIDTH * 3))
  for (let y = 0; y < HEIGHT; y += 1) {
    const background = mix(top, bottom, y / (HEIGHT - 1))
    // Each row starts with its filter type. 0 means none.
    let offset = y * (1 + WIDTH * 3) + 1
    for (let x = 0; x < WIDTH; x += 1) {
      const distance = Math.hypot(x - centre.x, y - centre.y) - centre.radius
      const cover = Math.min(Math.max(0.5 - distance / 6, 0), 1)
      for (const channel of mix(background, disc, cover)) rows[offset++] = Math.round(channel)
    }
  }
  return encodePng(rows).toString('base64')
}

const WIDTH = 240
const HEIGHT = 160
type Colour = readonly [red: number, green: number, blue: number]

/** FNV-1a. Similar words get different colours. */
function hash(text: string): number {
  let value = 0x811c9dc5
  for (const character of text) {
    value = Math.imul(value ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0
  }
  return value
}

function colour(hue: number, lightness: number): Colour {
  const channel = (shift: number): number => {
    const position = (shift + hue / 30) % 12
    const swing = 0.55 * Math.min(lightness, 1 - lightness)
    return 255 * (lightness - swing * Math.max(-1, Math.min(position - 3, 9 - position, 1)))
  }
  return [channel(0), channel(8), channel(4)]
}

function mix(from: Colour, to: Colour, share: number): Colour {
  const between = (start: number, end: number): number => start + (end - start) * share
  return [between(from[0], to[0]), between(from[1], to[1]), between(from[2], to[2])]
}

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

function encodePng(rows: Buffer): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(WIDTH, 0)
  header.writeUInt32BE(HEIGHT, 4)
  // Eight bits per channel, RGB, standard compression and filters, not interlaced.
  header.set([8, 2, 0, 0, 0], 8)
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(rows)),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const framed = Buffer.alloc(body.length + 8)
  framed.writeUInt32BE(data.length, 0)
  framed.set(body, 4)
  framed.writeUInt32BE(crc32(body), body.length + 4)
  return framed
}
