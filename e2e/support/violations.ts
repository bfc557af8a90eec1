import axe from 'axe-core'
import type { Page } from 'playwright-core'

/** Returns what axe finds on a page: the rule, and the elements. */
export async function violations(page: Page): Promise<unknown[]> {
  // Once per document: compiling axe costs as much CPU time as a third of a run.
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe.source)
  return page.evaluate(async () => {
    const { axe: inPage } = window as unknown as { axe: typeof axe }
    const found = await inPage.run(document, { resultTypes: ['violations'], selectors: false })
    return found.violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])
  })
}
