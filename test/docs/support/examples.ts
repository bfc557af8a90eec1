import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'

import type { Block } from './pages.ts'
import { ROOT } from './pages.ts'

/** Below the root, so that examples find the packages of the workspace. */
const EXAMPLES = path.join(ROOT, 'docs/.examples')

/**
 * After `npm test` has built the packages, examples are compiled with their declarations, as users have them, and the compiler does not
 * check the library again. Only the sources of the studio's page have no declarations.
 */
const BUILT = {
  customConditions: [],
  paths: {
    'adk-stream-protocol-studio/page': [path.join(ROOT, 'packages/studio/src/page/index.ts')],
  },
}

/** Stricter options than most projects use, so that the examples compile there too. */
const TSCONFIG = {
  extends: path.join(ROOT, 'tsconfig.base.json'),
  compilerOptions: {
    module: 'preserve',
    moduleResolution: 'bundler',
    jsx: 'react-jsx',
    lib: ['ES2023', 'ES2024.String', 'DOM', 'DOM.Iterable', 'ESNext.Disposable'],
    types: ['node'],
    // An example may declare something that it does not use.
    noUnusedLocals: false,
    noUnusedParameters: false,
    // Few projects set it, and it makes examples harder to read.
    noPropertyAccessFromIndexSignature: false,
    ...(process.env['PACKED_PACKAGES'] !== undefined && BUILT),
  },
  include: ['.'],
}

/** Compiles the TypeScript of all blocks at once. Returns the errors as `page:line: message`. */
export async function compileBlocks(name: string, blocks: readonly Block[]): Promise<string[]> {
  const folder = emptyFolder(name)
  const written = new Map<string, Block>()
  for (const block of blocks.filter(({ language }) => /^tsx?$/.test(language)))
    written.set(writeBlock(folder, block), block)
  writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG))
  cpSync(
    path.join(import.meta.dirname, 'not-installed.d.ts'),
    path.join(folder, 'not-installed.d.ts'),
  )
  const output = await runTsc(folder)
  rmSync(folder, { recursive: true })
  return output
    .split('\n')
    .filter((line) => line.includes('error TS'))
    .map((line) => {
      const [, file = '', at = '', message = line] = /^(.*?)\((\d+),\d+\): (.*)$/.exec(line) ?? []
      const block = written.get(file.split(path.sep).join('/'))
      return block ? `${block.page}:${at}: ${message}` : line
    })
}

/** Writes the files of a page or a project. Returns the folder. */
export function writeFiles(name: string, files: readonly Pick<Block, 'file' | 'text'>[]): string {
  const folder = emptyFolder(name)
  for (const { file, text } of files) {
    if (file === undefined) continue
    mkdirSync(path.dirname(path.join(folder, file)), { recursive: true })
    writeFileSync(path.join(folder, file), text)
  }
  return folder
}

function emptyFolder(name: string): string {
  const folder = path.join(EXAMPLES, name)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  return folder
}

/** Each page has a folder, so that its files can import one another. */
function writeBlock(folder: string, block: Block): string {
  const { page, language, line, given, text } = block
  const file = `${page.replaceAll(/[^\w]+/g, '-')}/${block.file ?? `line-${line}.${language}`}`
  mkdirSync(path.dirname(path.join(folder, file)), { recursive: true })
  // Keeps the line numbers of the page, so that errors can be found there.
  const before = `${given.replaceAll('\n', ' ')}${'\n'.repeat(line - 1)}`
  // assistant-ui requires AI SDK 7.
  const own = text.includes('@assistant-ui/') ? text.replace("from 'ai'", "from 'ai-7'") : text
  writeFileSync(path.join(folder, file), `${before}${own}\nexport {}\n`)
  return file
}

function runTsc(folder: string): Promise<string> {
  const tsc = path.join(ROOT, 'node_modules/typescript/bin/tsc')
  return new Promise((resolve) => {
    // One thread takes half of the CPU time.
    const args = [tsc, '-p', '.', '--pretty', 'false', '--singleThreaded']
    execFile(process.execPath, args, { cwd: folder }, (_, out) => resolve(out))
  })
}
