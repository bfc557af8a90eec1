import { type Browser, chromium } from 'playwright-core'

import { oncePerRun } from '../../test/support/once-per-run.ts'
import { type ChromiumChoice, findChromium, installChromium } from './find-chromium.ts'

/** Starts a real Chromium, with flags beside those that it needs. */
export async function launchChromium(flags: readonly string[] = []): Promise<Browser> {
  const { executablePath, args } = await chooseChromium()
  return chromium.launch({ executablePath, args: [...args, ...flags] })
}

/** Two workers must not install or unpack it at the same time. */
async function chooseChromium(): Promise<ChromiumChoice> {
  const choice = await oncePerRun('chromium', async () => {
    installChromium()
    return JSON.stringify(await findChromium())
  })
  return JSON.parse(choice) as ChromiumChoice
}

/** Flags for a microphone that plays a WAV file, over and over, and a person who allows it or not. */
export function microphoneFlags(wav: string, person: 'allows' | 'refuses' = 'allows'): string[] {
  return [
    '--use-fake-device-for-media-stream',
    `--use-file-for-fake-audio-capture=${wav}`,
    `--use-fake-ui-for-media-stream${person === 'allows' ? '' : '=deny'}`,
  ]
}
