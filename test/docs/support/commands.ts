import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'

import { TEMPLATES } from '../../../packages/create-adk-stream-protocol/src/templates.ts'
import type { Block, Page } from './pages.ts'
import { ROOT } from './pages.ts'

/** Packages that the docs name and that are not in the workspace. */
const ELSEWHERE = new Set(['next', 'create-next-app'])

/** Commands of the system, and of the shell. */
const SYSTEM = new Set(['export', 'mkdir', 'cd', 'cp', 'sqlite3', 'openssl', 'echo'])

type Check = (words: readonly string[], page: Page) => string | undefined

const CHECKS: Readonly<Record<string, Check>> = {
  npm: checkNpm,
  npx: checkNpx,
  curl: checkCurl,
  node: (words, page) => checkFile(words.findLast((word) => !word.startsWith('-')) ?? '', page),
}

/** Returns an error for each script, package, file, option and URL in the commands of a page that does not exist. */
export function checkCommands(page: Page): string[] {
  return page.blocks
    .filter(({ language }) => language === 'bash' || language === 'sh')
    .flatMap((block) => splitCommands(block).map((words) => [block, words] as const))
    .flatMap(([block, [command = '', ...words]]) => {
      const fault = SYSTEM.has(command)
        ? undefined
        : (CHECKS[command] ?? (() => `nobody checks ${command}`))(words, page)
      return fault === undefined ? [] : [`${page.path}:${block.line}: ${fault}`]
    })
}

/** Returns the commands of a block, without comments and without their environment variables. */
export function splitCommands({ text }: Pick<Block, 'text'>): string[][] {
  return text
    .replaceAll(/\\\n/g, ' ')
    .split(/\n|&&|\|/)
    .map((line) => [...line.replace(/(?:^|\s)#.*$/, '').matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)])
    .map((words) => words.map(([word]) => word))
    .map((words) => words.slice(words.findIndex((word) => !/^[A-Z_]+=/.test(word))))
    .filter((words) => words.length > 0)
}

function checkNpm([verb = '', ...words]: readonly string[]): string | undefined {
  if (verb === 'ci' || verb === 'init' || verb === 'pkg') return undefined
  if (verb === 'create') return checkCreate(words)
  if (verb === 'install') {
    // Without the version: `@scope/name@1`.
    const packages = words.map((word) => word.replace(/(?<=.)@[^@/]+$/, ''))
    const missing = packages.filter((name) => !name.startsWith('-') && !isKnown(name))
    return missing.length > 0 ? `no such package: ${missing.join(', ')}` : undefined
  }
  const script = verb === 'run' ? (words[0] ?? '') : verb
  const { scripts } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>
  }
  return script in scripts ? undefined : `no such script: ${script}`
}

/** Checks the name of the package, without its version, and the template. */
function checkCreate([name = '', ...words]: readonly string[]): string | undefined {
  const folder = `packages/create-${name.replace(/@.*$/, '')}`
  if (!existsSync(path.join(ROOT, folder))) return `no such package: create-${name}`
  const option = words.indexOf('--template')
  const template = option < 0 ? 'node' : (words[option + 1] ?? '')
  return Object.hasOwn(TEMPLATES, template) ? undefined : `no such template: ${template}`
}

function isKnown(name: string): boolean {
  const plain = name.replace(/(?<=.)@[\d^.]+$/, '')
  return ELSEWHERE.has(plain) || existsSync(path.join(ROOT, 'node_modules', plain, 'package.json'))
}

function checkNpx(given: readonly string[], page: Page): string | undefined {
  const [tool = '', ...words] = given.filter((word, index) => index > 0 || word !== '-y')
  if (tool === 'gemini-emulator') return checkEmulatorFlags(words)
  if (tool === 'tsx') return checkFile(words.findLast((word) => !word.startsWith('-')) ?? '', page)
  if (ELSEWHERE.has(tool.replace(/@latest$/, ''))) return undefined
  // npm links the commands of a workspace only if they are built before the installation.
  const isOurs = tool === 'adk-stream-protocol' || tool === 'adk-stream-protocol-studio'
  return isOurs || existsSync(path.join(ROOT, 'node_modules/.bin', tool))
    ? undefined
    : `no such tool: ${tool}`
}

function checkEmulatorFlags(words: readonly string[]): string | undefined {
  const cli = readFileSync(path.join(ROOT, 'packages/gemini-emulator/src/cli.ts'), 'utf8')
  const help = /HELP = `([^`]*)`/.exec(cli)?.[1] ?? ''
  const wrong = words.filter((word) => word.startsWith('--') && !help.includes(`${word} `))
  return wrong.length > 0 ? `gemini-emulator does not know ${wrong.join(', ')}` : undefined
}

function checkFile(file: string, page: Page): string | undefined {
  const isShown = page.blocks.some((block) => block.file === file)
  return isShown ? undefined : `the page does not show ${file}`
}

/** Checks a URL against the endpoints in PROTOCOL.md. */
function checkCurl(words: readonly string[]): string | undefined {
  const url = words
    .map((word) => word.replaceAll(/['"]/g, ''))
    .find((word) => /^https?:/.test(word))
  const { pathname } = new URL(url ?? '', 'http://none')
  const protocol = readFileSync(path.join(ROOT, 'PROTOCOL.md'), 'utf8')
  const addresses = [...protocol.matchAll(/^- `(?:GET|POST|PATCH|DELETE|WS) (\/\S*)`/gm)]
  const isServed = addresses.some(([, address = '']) =>
    new RegExp(`${address.replaceAll(/:\w+/g, '[^/]+')}$`).test(decodeURI(pathname)),
  )
  return url !== undefined && isServed ? undefined : `no such address: ${url ?? 'none'}`
}
