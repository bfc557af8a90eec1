import { buildDemoPage } from '../../apps/demo/scripts/build-page.ts'
import { buildPage, STUDIO_PAGE } from '../../packages/studio/scripts/build-page.ts'
import { oncePerRun } from './once-per-run.ts'

/** Builds the page of the demo, once for all workers of a test run. */
export async function builtPage(): Promise<void> {
  await oncePerRun('page', async () => {
    await buildDemoPage()
    return 'built'
  })
}

/** Builds the page of the studio, which has no plug-in, once for all workers of a test run. */
export async function builtStudioPage(): Promise<void> {
  await oncePerRun('studio-page', async () => {
    await buildPage(STUDIO_PAGE)
    return 'built'
  })
}
