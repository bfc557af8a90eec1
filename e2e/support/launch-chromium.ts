import { type Browser, chromium } from 'playwright-core'

import { findChromium } from './find-chromium.ts'

/** Starts a real Chromium, with flags beside those that it needs. */
export async function launchChromium(flags: readonly string[] = []): Promise<Browser> {
  const { executablePath, args } = await findChromium()
  return chromium.launch({ executablePath, args: [...args, ...flags] })
}

/** Flags for a microphone that plays a WAV file, over and over, and a person who allows it or not. */
export function microphoneFlags(wav: string, person: 'allows' | 'refuses' = 'allows'): string[] {
  return [
    '--use-fake-device-for-media-stream',
    `--use-file-for-fake-audio-capture=${wav}`,
    `--use-fake-ui-for-media-stream${person === 'allows' ? '' : '=deny'}`,
  ]
}
