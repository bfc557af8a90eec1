import { fileURLToPath } from 'node:url'

import type { Page } from 'playwright-core'

const FOLDER = fileURLToPath(new URL('../screenshots', import.meta.url))

/** Leaves a picture of what the person sees, for people to look at. */
export async function snap(page: Page, name: string): Promise<void> {
  await page.screenshot({ path: `${FOLDER}/${name}.png` })
}
