import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

import type axe from 'axe-core'
import type { Page } from 'playwright-core'

// Half the size of `axe.source`. It is sent to each document.
const SOURCE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Open popovers and dialogs. */
export const OVERLAYS = '.popover:popover-open, dialog[open]'

/** Returns the violations that axe finds on a page, or in the element of a selector: the rules and their elements. */
export async function findViolations(page: Page, within?: string): Promise<unknown[]> {
  if (within !== undefined) await page.locator(within).first().waitFor()
  // Once per document: compiling axe costs as much CPU time as a third of a run.
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(SOURCE)
  return page.evaluate(async (selector) => {
    const { axe: inPage } = window as unknown as { axe: typeof axe }
    const found = await inPage.run(selector ?? document, {
      resultTypes: ['violations'],
      selectors: false,
    })
    return found.violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])
  }, within)
}
