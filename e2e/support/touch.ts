import type { Locator } from 'playwright-core'

/** A phone with a touch screen. */
export const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }

/** How long people touch a button, in ms, from a quick tap to a slow one. */
const TAPS_MS = [60, 120, 200]

let taps = 0

/** Taps as a finger does: it stays on the screen for a moment. `locator.tap()` lifts it at once. */
export async function tap(target: Locator, options?: { readonly timeout: number }): Promise<void> {
  const page = target.page()
  // Waits until the button does not move and nothing covers it.
  await target.tap({ ...options, trial: true })
  const box = await target.boundingBox(options)
  if (!box) throw new Error('There is nothing to tap.')
  const point = { x: box.x + box.width / 2, y: box.y + box.height / 2 }
  const session = await page.context().newCDPSession(page)
  try {
    await session.send('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints: [point] })
    await page.waitForTimeout(TAPS_MS[(taps += 1) % TAPS_MS.length] ?? 0)
    await session.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] })
  } finally {
    await session.detach()
  }
}
