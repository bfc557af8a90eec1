import sparticuz from '@sparticuz/chromium'
import { type Browser, chromium } from 'playwright-core'

/** Starts the Chromium that comes with npm, or the one that `CHROMIUM_PATH` names: npm has it for x64 only. */
export async function launchChromium(): Promise<Browser> {
  const own = process.env['CHROMIUM_PATH']
  if (own) return chromium.launch({ executablePath: own, args: ['--no-sandbox'] })
  if (process.arch !== 'x64') {
    throw new Error(`There is no Chromium on npm for ${process.arch}. Set CHROMIUM_PATH to one.`)
  }
  // The page must be protected by the browser as it is for a reader.
  const args = sparticuz.args.filter((flag) => !UNSAFE.has(flag))
  return chromium.launch({ executablePath: await sparticuz.executablePath(), args })
}

const UNSAFE = new Set(['--disable-web-security', '--allow-running-insecure-content'])
