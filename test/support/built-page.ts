import { buildPage } from '../../apps/demo/scripts/build-page.ts'
import { oncePerRun } from './once-per-run.ts'

/** Builds the page of the demo, once for all workers of a test run. */
export async function builtPage(): Promise<void> {
  await oncePerRun('page', async () => {
    await buildPage()
    return 'built'
  })
}
