import type { Page } from 'playwright-core'

/** Leaves a picture of the page for those who want to see what a test saw. */
export async function shoot(page: Page, name: string): Promise<void> {
  await page.screenshot({ path: new URL(`../screenshots/${name}.png`, import.meta.url).pathname })
}
