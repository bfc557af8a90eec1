import { AxeBuilder } from '@axe-core/playwright'
import type { Page } from 'playwright-core'

/** What axe finds to mend on a page: the rule, and the elements. */
export async function violations(page: Page): Promise<unknown[]> {
  const { violations: found } = await new AxeBuilder({ page }).analyze()
  return found.map(({ id, nodes }) => [id, nodes.map((node) => node.html)])
}
