import { readFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import { chooseExecutable, type Machine } from './support/find-chromium.ts'

const SHELL = '/usr/lib/chromium/chromium-headless-shell'
const MAC_CHROME = '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome'
const MAC_EDGE = '/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge'
const WINDOWS = {
  ProgramFiles: 'C:\\Program Files',
  'ProgramFiles(x86)': 'C:\\Program Files (x86)',
}
const WINDOWS_EDGE = 'C:\\Program Files (x86)\\Microsoft\\Edge\\Application\\msedge.exe'

function machine(
  platform: NodeJS.Platform,
  arch: string,
  installed: readonly string[],
  env: Machine['env'] = {},
): Machine {
  return { platform, arch, env, exists: (file) => installed.includes(file) }
}

test.each<[string, Machine, string | undefined]>([
  ['Linux on x64 uses the one from npm', machine('linux', 'x64', [SHELL]), undefined],
  ['Linux on arm64', machine('linux', 'arm64', ['/usr/bin/chromium', SHELL]), SHELL],
  ['a Mac with an Intel processor', machine('darwin', 'x64', [MAC_CHROME, SHELL]), MAC_CHROME],
  ['a Mac with Edge only', machine('darwin', 'arm64', [MAC_EDGE]), MAC_EDGE],
  [
    'a Mac with Chrome in the home folder',
    machine('darwin', 'arm64', [`/Users/hanako${MAC_CHROME}`], { HOME: '/Users/hanako' }),
    `/Users/hanako${MAC_CHROME}`,
  ],
  ['Windows', machine('win32', 'x64', [WINDOWS_EDGE], WINDOWS), WINDOWS_EDGE],
  ['a chosen one', machine('darwin', 'x64', [MAC_CHROME], { CHROMIUM_PATH: '/own' }), '/own'],
])('[AR1145] the browser of the tests: %s', (_name, found, executable) => {
  expect(chooseExecutable(found)).toBe(executable)
})

test.each<[Machine, string]>([
  [machine('linux', 'arm64', []), 'apt-get install chromium'],
  [machine('darwin', 'x64', []), 'Install Google Chrome'],
  [machine('win32', 'x64', [], WINDOWS), 'Install Google Chrome'],
])('[AR1145] without a browser, the error says what to install', (found, todo) => {
  expect(() => chooseExecutable(found)).toThrow(todo)
})

test('[AR1145] no npm script sets a variable in a way that only some shells understand', () => {
  const files = [
    'package.json',
    'apps/demo/package.json',
    'packages/studio/package.json',
    'docs/package.json',
  ]
  const scripts = files.flatMap((file) => {
    const text = readFileSync(new URL(`../${file}`, import.meta.url), 'utf8')
    return Object.values((JSON.parse(text) as { scripts?: Record<string, string> }).scripts ?? {})
  })
  expect(scripts.length).toBeGreaterThan(20)
  expect(scripts.filter((script) => /(?:^|&& ?)[A-Z_]+=/.test(script))).toEqual([])
})
