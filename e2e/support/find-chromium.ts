import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'

import sparticuz from '@sparticuz/chromium'

export interface ChromiumChoice {
  readonly executablePath: string
  readonly args: readonly string[]
}

/**
 * The Chromium to test with: the one that `CHROMIUM_PATH` names, else the one that comes with npm. That one exists for x64 only;
 * elsewhere the system's is used.
 */
export async function findChromium(): Promise<ChromiumChoice> {
  const named =
    process.env['CHROMIUM_PATH'] ?? (process.arch === 'x64' ? undefined : findOfSystem())
  if (named) return { executablePath: named, args: SYSTEM_ARGS }
  if (process.arch !== 'x64') {
    throw new Error(
      `npm has no Chromium for ${process.arch}. Install one (apt-get install chromium), or set CHROMIUM_PATH.`,
    )
  }
  // The page must be protected by the browser as it is for a reader.
  const args = sparticuz.args.filter((flag) => !UNWANTED.has(flag))
  return { executablePath: await sparticuz.executablePath(), args }
}

/** Where npm has no Chromium and we may, Debian's is installed. */
export function installChromium(): void {
  const mayInstall = process.getuid?.() === 0 && existsSync('/usr/bin/apt-get')
  if (process.env['CHROMIUM_PATH'] || process.arch === 'x64' || findOfSystem() || !mayInstall)
    return
  process.stderr.write(`npm has no Chromium for ${process.arch}: installing Debian's …\n`)
  apt('update', '-qq')
  apt('install', '-y', '-qq', '--no-install-recommends', 'chromium')
}

function apt(...args: string[]): void {
  execFileSync('apt-get', args, {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  })
}

function findOfSystem(): string | undefined {
  return ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
    existsSync,
  )
}

// Containers run as root, where Chromium's own sandbox cannot start; the rest keeps it from looking up Google's hosts.
const SYSTEM_ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

// A single process dies with its first page, and a test opens several.
const UNWANTED = new Set([
  '--disable-web-security',
  '--allow-running-insecure-content',
  '--single-process',
  '--no-zygote',
  '--in-process-gpu',
])
