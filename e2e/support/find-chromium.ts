import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'

import sparticuz from '@sparticuz/chromium'

export interface ChromiumChoice {
  readonly executablePath: string
  readonly args: readonly string[]
}

/**
 * Returns the Chromium for the tests: `CHROMIUM_PATH`, or the one from npm, which exists for x64 only, or an installed one. The
 * headless shell is preferred, because it needs a third of the CPU time.
 */
export async function findChromium(): Promise<ChromiumChoice> {
  const path =
    process.env['CHROMIUM_PATH'] ?? (process.arch === 'x64' ? undefined : findInstalled())
  if (path) return { executablePath: path, args: SYSTEM_ARGS }
  if (process.arch !== 'x64') {
    throw new Error(
      `npm has no Chromium for ${process.arch}. Install one (apt-get install chromium), or set CHROMIUM_PATH.`,
    )
  }
  // The browser's security features stay on, as they are for users.
  const args = sparticuz.args.filter((flag) => !UNWANTED.has(flag))
  return { executablePath: await sparticuz.executablePath(), args }
}

/** Installs Debian's headless shell if npm has no Chromium for this platform and the process is root. Falls back to an installed Chromium. */
export function installChromium(): void {
  const mayInstall = process.getuid?.() === 0 && existsSync('/usr/bin/apt-get')
  if (process.env['CHROMIUM_PATH'] || process.arch === 'x64' || existsSync(SHELL) || !mayInstall)
    return
  process.stderr.write(`npm has no Chromium for ${process.arch}: installing Debian's …\n`)
  try {
    apt('update', '-qq')
    apt('install', '-y', '-qq', '--no-install-recommends', 'chromium-headless-shell')
  } catch (error) {
    if (!findInstalled()) throw error
  }
}

function apt(...args: string[]): void {
  execFileSync('apt-get', args, {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  })
}

function findInstalled(): string | undefined {
  return [SHELL, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
    existsSync,
  )
}

// The binary, not its wrapper script in /usr/bin, which would not forward signals.
const SHELL = '/usr/lib/chromium/chromium-headless-shell'

// Containers run as root, where Chromium's sandbox cannot start. The other flags disable requests to Google's hosts.
const SYSTEM_ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

// A single-process Chromium exits with its first page, and a test opens several.
const UNWANTED = new Set([
  '--disable-web-security',
  '--allow-running-insecure-content',
  '--single-process',
  '--no-zygote',
  '--in-process-gpu',
])
