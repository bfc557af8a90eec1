import { type Browser, chromium } from 'playwright-core'

import { oncePerRun } from '../../test/support/once-per-run.ts'
import { type ChromiumChoice, findChromium, installChromium } from './find-chromium.ts'

/** Starts Chromium with additional flags. */
export async function launchChromium(flags: readonly string[] = []): Promise<Browser> {
  const { executablePath, args } = await chooseChromium()
  return chromium.launch({ executablePath, args: [...args, ...flags] })
}

/** Runs once for all workers, which must not install or unpack Chromium at the same time. */
async function chooseChromium(): Promise<ChromiumChoice> {
  const choice = await oncePerRun('chromium', async () => {
    installChromium()
    return JSON.stringify(await findChromium())
  })
  return JSON.parse(choice) as ChromiumChoice
}

/** Returns flags for a microphone that plays a WAV file in a loop, with the permission granted or denied. */
export function microphoneFlags(
  wav: string,
  permission: 'granted' | 'denied' = 'granted',
): string[] {
  return [
    '--use-fake-device-for-media-stream',
    `--use-file-for-fake-audio-capture=${wav}`,
    `--use-fake-ui-for-media-stream${permission === 'granted' ? '' : '=deny'}`,
  ]
}
