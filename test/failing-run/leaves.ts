import { expect, test, vi } from 'vitest'

test('leaves a fake timer and an environment variable', () => {
  vi.useFakeTimers()
  const spy = vi.spyOn(globalThis, 'setTimeout')
  // The spy is still there, and its end puts the fake timer back.
  vi.useRealTimers()
  process.env['LEFT_BY_A_TEST'] = '1'
  expect(spy).not.toHaveBeenCalled()
})
