import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { getServerTime, observeServerTime } from '../../src/client/api/server-clock.ts'

const NOW = Date.UTC(2026, 2, 29, 0, 59, 59)

beforeEach(() => void vi.useFakeTimers({ now: NOW }))
afterEach(() => {
  // The clock belongs to the page, and so to all tests of this file.
  respond({ date: NOW })
  vi.useRealTimers()
})

/** Receives a response that the server made at `date`. The request took `tookMs`. */
function respond({ date, tookMs = 100, age }: { date: number; tookMs?: number; age?: string }) {
  const headers = { date: new Date(date).toUTCString(), ...(age !== undefined && { age }) }
  observeServerTime(new Response('', { headers }), Date.now() - tookMs)
}

test('[CL880] a clock that agrees with the server is not corrected', () => {
  for (const date of [NOW, NOW - 1_000, NOW + 1_000]) {
    respond({ date })
    expect(getServerTime()).toBe(NOW)
  }
  // A slow response was made at some time in between.
  respond({ date: NOW - 20_000, tookMs: 30_000 })
  expect(getServerTime()).toBe(NOW)
})

test('[CL880] a wrong clock is corrected to a second, until it is right again', () => {
  for (const offset of [3_600_000, -3_600_000]) {
    respond({ date: NOW + offset })
    expect(Math.abs(getServerTime() - NOW - offset)).toBeLessThanOrEqual(1_000)
  }
  respond({ date: NOW })
  expect(getServerTime()).toBe(NOW)
})

test('[CL880] a response without a date, or from a cache, says nothing about the clock', () => {
  observeServerTime(new Response(''), NOW)
  respond({ date: NOW - 3_600_000, age: '3600' })
  expect(getServerTime()).toBe(NOW)
})
