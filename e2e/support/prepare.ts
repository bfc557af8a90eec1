import { buildPage } from '../../apps/demo/scripts/build-page.ts'
import { findChromium, installChromium } from './find-chromium.ts'

/** Once before all browser tests: two files run at a time, and neither may unpack or build what the other is using. */
export async function setup(): Promise<void> {
  installChromium()
  await findChromium()
  await buildPage()
}
