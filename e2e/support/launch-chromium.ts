import { type Browser, chromium } from 'playwright-core'

import { oncePerRun } from '../../test/support/once-per-run.ts'
import { type ChromiumChoice, findChromium, installChromium } from './find-chromium.ts'

/** Starts Chromium with additional flags. */
export async function launchChromium(flags: readonly string[] = []): Promise<Browser> {
  const { executablePath, args } = await chooseChromium()
  return chromium.launch({ executablePath, args: [...args, ...flags] })
}

/** A browser whose processes can be suspended, as those of a laptop that sleeps. Not on Windows. */
interface SuspendableBrowser extends AsyncDisposable {
  readonly browser: Browser
  suspend(): void
  resume(): void
}

export async function launchSuspendable(): Promise<SuspendableBrowser> {
  const { executablePath, args } = await chooseChromium()
  const server = await chromium.launchServer({ executablePath, args: [...args] })
  const { pid } = server.process()
  // The browser leads a process group.
  const signal = (name: NodeJS.Signals): void => void (pid && process.kill(-pid, name))
  return {
    browser: await chromium.connect(server.wsEndpoint()),
    suspend: () => signal('SIGSTOP'),
    resume: () => signal('SIGCONT'),
    async [Symbol.asyncDispose]() {
      signal('SIGCONT')
      await server.close()
    },
  }
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
