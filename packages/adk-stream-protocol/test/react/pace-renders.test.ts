import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { paceRenders } from '../../src/react/hooks/use-chat-instance.ts'

const FRAME_MS = 16

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  vi.stubGlobal('document', { visibilityState: 'visible' })
  vi.stubGlobal('requestAnimationFrame', (call: () => void) => setTimeout(call, FRAME_MS))
  vi.stubGlobal('cancelAnimationFrame', clearTimeout)
})
afterEach(() => {
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

/** Requests a render every 5 ms for 2 seconds. Each takes `drawMs`. Returns the times of the renders. */
function renderChunks(drawMs: number, minMs: number) {
  const times: number[] = []
  let blocked = 0
  const start = Date.now()
  vi.spyOn(performance, 'now').mockImplementation(() => Date.now() - start)
  const paced = paceRenders(() => {
    times.push(performance.now())
    vi.advanceTimersByTime(0)
    // The page is blocked meanwhile.
    vi.setSystemTime(Date.now() + drawMs)
    blocked += drawMs
  }, minMs)
  for (let chunk = 0; chunk < 400; chunk += 1) {
    paced.request()
    vi.advanceTimersByTime(5)
  }
  const whole = performance.now()
  vi.restoreAllMocks()
  return { times, paced, blocked, whole }
}

test('[RE12] a page that draws quickly renders once in `minMs`', () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
  const { times } = renderChunks(1, 33)
  const gaps = times.slice(1).map((time, index) => time - (times[index] ?? 0))
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(33)
  expect(Math.max(...gaps)).toBeLessThan(33 + 2 * FRAME_MS + 10)
})

test('[RE12] a page that draws slowly has half of the time for input', () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
  const { times, blocked, whole } = renderChunks(100, 33)
  expect(times.length).toBeGreaterThan(5)
  expect(blocked / whole).toBeLessThan(0.5)
})

test('[RE12] a hidden page, which gets no frames, is rendered too; nothing is rendered after a cancel', () => {
  const render = vi.fn()
  vi.stubGlobal('requestAnimationFrame', () => 0)
  vi.stubGlobal('cancelAnimationFrame', () => undefined)
  const paced = paceRenders(render, 33)
  paced.request()
  paced.request()
  vi.advanceTimersByTime(1_000)
  expect(render).toHaveBeenCalledTimes(1)
  paced.request()
  paced.cancel()
  vi.advanceTimersByTime(1_000)
  expect(render).toHaveBeenCalledTimes(1)
  paced.request()
  vi.advanceTimersByTime(1_000)
  expect(render).toHaveBeenCalledTimes(2)
})
