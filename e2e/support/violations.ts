import { AxeBuilder } from '@axe-core/playwright'
import type { Page } from 'playwright-core'

/** What axe finds to mend on a page: the rule, and the elements. */
export async function violations(page: Page): Promise<unknown[]> {
  // In the page alone, without a second page for the frames that ours does not have: half of the CPU time.
  const axe = new AxeBuilder({ page }).setLegacyMode().options({ resultTypes: ['violations'] })
  const { violations: found } = await axe.analyze()
  return found.map(({ id, nodes }) => [id, nodes.map((node) => node.html)])
}
