import { fileURLToPath } from 'node:url'

import type { Page } from 'playwright-core'

const FOLDER = fileURLToPath(new URL('../screenshots', import.meta.url))

/** Writes a screenshot for review if `E2E_SCREENSHOTS=1` is set. No test depends on it. */
export async function takeScreenshot(page: Page, name: string): Promise<void> {
  if (process.env['E2E_SCREENSHOTS'] !== '1') return
  await page.screenshot({ path: `${FOLDER}/${name}.png` })
}
