import { deflateSync, inflateSync } from 'node:zlib'
import { expect, test } from 'vitest'

import { measureImage } from '../../src/model/images/measure-image.ts'

function chunk(type: string, data: Buffer): Buffer {
  const head = Buffer.alloc(8)
  head.writeUInt32BE(data.length, 0)
  head.write(type, 4, 'latin1')
  return Buffer.concat([head, data, Buffer.alloc(4)])
}

/** A PNG of 8 bit colours with transparency, or a file that claims to be one. */
function png(width: number, height: number, deflatedRows: Buffer): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header[8] = 8
  header[9] = 6
  const signature = Buffer.from('89504e470d0a1a0a', 'hex')
  const data = chunk('IDAT', deflatedRows)
  return Buffer.concat([signature, chunk('IHDR', header), data, chunk('IEND', Buffer.alloc(0))])
}

/** Deflated rows of one colour, with a PNG filter. */
function rowsOf(width: number, height: number, filter: number): Buffer {
  const row = Buffer.from([filter, ...Buffer.alloc(width * 4, Buffer.from([200, 10, 10, 255]))])
  return deflateSync(Buffer.concat(Array.from({ length: height }, () => row)))
}

const SIZE = 16 * 1_048_576
const zeros = deflateSync(Buffer.alloc(SIZE), { level: 9 })

test.each([
  ['no width', 0, 0xfffffffe],
  ['no height', 0xfffffffe, 0],
])(
  '[ED28] a small file with %s that would unpack to a large one is not unpacked',
  (_, width, height) => {
    const file = png(width, height, zeros)
    expect(file.length).toBeLessThan(100_000)
    const unpacking = leastCpu(() => expect(inflateSync(zeros).length).toBe(SIZE))
    expect(leastCpu(() => expect(measureImage(file)).toBeUndefined())).toBeLessThan(unpacking / 4)
  },
)

/** The shortest CPU time of three runs, in µs. Other work of the process may make a run longer. */
function leastCpu(attempt: () => void): number {
  const times = [1, 2, 3].map(() => {
    const before = process.cpuUsage()
    attempt()
    const { user, system } = process.cpuUsage(before)
    return user + system
  })
  return Math.min(...times)
}

test('[ED28] the colour of a picture is named up to 250,000 pixels, its size always', () => {
  expect(measureImage(png(500, 500, rowsOf(500, 500, 0)))).toEqual({
    width: 500,
    height: 500,
    colour: 'red',
  })
  expect(measureImage(png(501, 500, rowsOf(501, 500, 0)))).toEqual({ width: 501, height: 500 })
})
