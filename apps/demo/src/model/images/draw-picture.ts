import { crc32, deflateSync } from 'node:zlib'

/** Draws a landscape in colours derived from the subject, with a lighthouse if the subject names one. Returns a PNG in base64. */
export function drawPicture(subject: string): string {
  const seed = hash(subject)
  // A different hour of the day for each subject.
  const hue = 185 + (seed % 70)
  const scene: Scene = {
    sky: [colour(hue, 0.45), colour((hue + 150) % 360, 0.82)],
    sun: { x: WIDTH * (0.2 + ((seed >>> 5) % 20) / 100), y: HEIGHT * 0.3, radius: HEIGHT * 0.1 },
    land: [0, 1, 2].map((layer) => colour(hue - 20 + layer * 10, 0.5 - layer * 0.12)),
    phase: (seed >>> 11) % 100,
    hasLighthouse: /light.?house|灯台/i.test(subject),
  }
  const rows = Buffer.alloc(HEIGHT * (1 + WIDTH * 3))
  for (let y = 0; y < HEIGHT; y += 1) {
    // Each row starts with its filter type. 0 means none.
    let offset = y * (1 + WIDTH * 3) + 1
    for (let x = 0; x < WIDTH; x += 1)
      for (const channel of paint(scene, x, y)) rows[offset++] = Math.round(channel)
  }
  return encodePng(rows).toString('base64')
}

interface Scene {
  readonly sky: readonly [top: Colour, bottom: Colour]
  readonly sun: { readonly x: number; readonly y: number; readonly radius: number }
  /** Hills or waves, from the farthest to the nearest. */
  readonly land: readonly Colour[]
  readonly phase: number
  readonly hasLighthouse: boolean
}

/** Returns the colour of a pixel: the sky, then everything in front of it. */
function paint({ sky, sun, land, phase, hasLighthouse }: Scene, x: number, y: number): Colour {
  let pixel = mix(sky[0], sky[1], y / HEIGHT)
  pixel = mix(pixel, SUN, covers(Math.hypot(x - sun.x, y - sun.y) - sun.radius))
  if (hasLighthouse) pixel = paintLighthouse(pixel, x, y)
  for (const [layer, fill] of land.entries()) {
    const top =
      HEIGHT * (0.62 + layer * 0.12) + Math.sin((x + phase) / (34 - layer * 8) + layer * 2) * 5
    pixel = mix(pixel, fill, covers(top - y))
  }
  return pixel
}

const SUN: Colour = [255, 244, 214]
const WALL: Colour = [246, 243, 236]
const STRIPE: Colour = [196, 62, 48]
const ROOF: Colour = [52, 44, 48]
const LAMP: Colour = [255, 226, 120]
const ROCK: Colour = [70, 66, 72]

/** A striped tower on a rock, with a lamp and two beams. */
function paintLighthouse(behind: Colour, x: number, y: number): Colour {
  const centre = WIDTH * 0.68
  const lampY = HEIGHT * 0.2
  const aside = Math.abs(x - centre)
  let pixel = behind
  // The beams widen with the distance and fade out.
  const beam = covers((Math.abs(y - lampY) - aside * 0.16) / 3) * Math.max(0, 1 - aside / 110)
  pixel = mix(pixel, LAMP, beam * 0.55)
  const height = (y - HEIGHT * 0.27) / (HEIGHT * 0.4)
  if (height >= 0 && height <= 1) {
    const halfWidth = 8 + height * 5
    const wall = Math.floor(height * 5) % 2 === 0 ? WALL : STRIPE
    // Darker on the side away from the sun.
    const lit = mix(wall, ROOF, Math.max(0, (x - centre) / halfWidth) * 0.3)
    pixel = mix(pixel, lit, covers(aside - halfWidth))
  }
  pixel = mix(pixel, ROOF, covers(Math.max(aside - 10, Math.abs(y - HEIGHT * 0.265) - 2)))
  pixel = mix(pixel, LAMP, covers(Math.max(aside - 6, Math.abs(y - lampY) - 8)))
  pixel = mix(pixel, ROOF, covers(Math.max(aside - (y - HEIGHT * 0.08) * 0.8, y - HEIGHT * 0.15)))
  const rock = HEIGHT * 0.64 + (aside / 34) ** 2 * 12
  return mix(pixel, ROCK, covers(Math.max(rock - y, aside - 46)))
}

/** Returns how much of a pixel a shape covers whose edge is `distance` away, negative inside. */
function covers(distance: number): number {
  return Math.min(Math.max(0.5 - distance, 0), 1)
}

const WIDTH = 360
const HEIGHT = 240
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
