import { type Browser, chromium } from 'playwright-core'

import { findChromium } from './find-chromium.ts'

/** Starts a real Chromium. */
export async function launchChromium(): Promise<Browser> {
  const { executablePath, args } = await findChromium()
  return chromium.launch({ executablePath, args: [...args] })
}
