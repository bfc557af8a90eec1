import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'

import sparticuz from '@sparticuz/chromium'

export interface ChromiumChoice {
  readonly executablePath: string
  readonly args: readonly string[]
}

/** What the choice of a browser depends on. */
export interface Machine {
  readonly platform: NodeJS.Platform
  readonly arch: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly exists: (file: string) => boolean
}

const THIS_MACHINE: Machine = {
  platform: process.platform,
  arch: process.arch,
  env: process.env,
  exists: existsSync,
}

/**
 * Returns the Chromium for the tests: `CHROMIUM_PATH`, or the one from npm, which exists for Linux on x64 only, or an installed one. The
 * headless shell is preferred, because it needs a third of the CPU time.
 */
export async function findChromium(): Promise<ChromiumChoice> {
  const executablePath = chooseExecutable(THIS_MACHINE)
  if (executablePath !== undefined) return { executablePath, args: SYSTEM_ARGS }
  // WebGL, which the page does not use, would also draw the page, on an emulated graphics card: half of the browser's CPU time.
  sparticuz.setGraphicsMode = false
  // The browser's security features stay on, as they are for users.
  const args = sparticuz.args
    .filter((flag) => !UNWANTED.has(flag))
    .map((flag) => (flag.startsWith(DISABLED) ? `${flag},${SCRIPT_STREAMING}` : flag))
  return { executablePath: await sparticuz.executablePath(), args }
}

/** Returns the executable of a machine, or undefined if it uses the one from npm. Throws an error that says what to install. */
export function chooseExecutable(machine: Machine): string | undefined {
  const { platform, arch, env } = machine
  if (env['CHROMIUM_PATH']) return env['CHROMIUM_PATH']
  if (hasNpmChromium(machine)) return undefined
  const installed = listExecutables(machine).find((file) => machine.exists(file))
  if (installed !== undefined) return installed
  const todo =
    platform === 'linux' ? 'Install one: apt-get install chromium' : 'Install Google Chrome'
  throw new Error(
    `npm has no Chromium for ${platform} on ${arch}, and none is installed. ${todo}, or set CHROMIUM_PATH.`,
  )
}

function hasNpmChromium({ platform, arch }: Machine): boolean {
  return platform === 'linux' && arch === 'x64'
}

// The binary, not its wrapper script in /usr/bin, which would not forward signals.
const SHELL = '/usr/lib/chromium/chromium-headless-shell'

/** Lists where Chrome, Chromium and Edge are installed, the preferred one first. */
function listExecutables({ platform, env }: Machine): string[] {
  if (platform === 'darwin')
    return ['', env['HOME'] ?? ''].flatMap((home) =>
      ['Google Chrome', 'Chromium', 'Microsoft Edge'].map(
        (name) => `${home}/Applications/${name}.app/Contents/MacOS/${name}`,
      ),
    )
  if (platform === 'win32')
    return [
      ['Google', 'Chrome', 'Application', 'chrome.exe'],
      ['Chromium', 'Application', 'chrome.exe'],
      ['Microsoft', 'Edge', 'Application', 'msedge.exe'],
    ].flatMap((program) =>
      ['ProgramFiles', 'ProgramFiles(x86)', 'LOCALAPPDATA'].flatMap((name) => {
        const folder = env[name]
        return folder === undefined ? [] : [path.win32.join(folder, ...program)]
      }),
    )
  return [
    SHELL,
    '/usr/bin/chromium',
    '/usr/bin/chromium-browser',
    '/usr/bin/google-chrome',
    '/usr/bin/microsoft-edge',
    '/snap/bin/chromium',
  ]
}

/** Installs Debian's headless shell if npm has no Chromium for this platform and the process is root. Falls back to an installed Chromium. */
export function installChromium(): void {
  const mayInstall = process.getuid?.() === 0 && existsSync('/usr/bin/apt-get')
  if (
    process.env['CHROMIUM_PATH'] ||
    hasNpmChromium(THIS_MACHINE) ||
    existsSync(SHELL) ||
    !mayInstall
  )
    return
  process.stderr.write(`npm has no Chromium for ${process.arch}: installing Debian's …\n`)
  try {
    apt('update', '-qq')
    apt('install', '-y', '-qq', '--no-install-recommends', 'chromium-headless-shell')
  } catch (error) {
    if (!listExecutables(THIS_MACHINE).some((file) => existsSync(file))) throw error
  }
}

function apt(...args: string[]): void {
  execFileSync('apt-get', args, {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  })
}

/** Of several flags with this prefix, Chromium reads only the last one. */
const DISABLED = '--disable-features='

/** Compiles scripts while they are loaded, also those that an earlier page of the browser has left compiled. */
const SCRIPT_STREAMING = 'ScriptStreaming'

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
