import { fileURLToPath } from 'node:url'

import type { Page } from 'playwright-core'

const FOLDER = fileURLToPath(new URL('../screenshots', import.meta.url))

/** With `E2E_SCREENSHOTS=1`, writes a picture of the page for people to look at. No test depends on it. */
export async function snap(page: Page, name: string): Promise<void> {
  if (process.env['E2E_SCREENSHOTS'] !== '1') return
  await page.screenshot({ path: `${FOLDER}/${name}.png` })
}
