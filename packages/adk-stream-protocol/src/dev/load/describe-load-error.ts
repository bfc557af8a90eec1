import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import type { HookMessage } from './hook-messages.ts'
import { LoadError, type Place } from './load-error.ts'

interface Attempt {
  /** The file of the agent. */
  readonly entry: string
  readonly cwd: string
  readonly messages: readonly HookMessage[]
}

/** Returns one sentence about an error with which a module failed to load, with the file and the line. */
export async function describeLoadError(error: unknown, attempt: Attempt): Promise<LoadError> {
  const { messages, entry, cwd } = attempt
  const failed = (code: LoadError['code'], message: string, place?: Place): LoadError =>
    new LoadError(code, message, { cause: error, place })
  const show = (file: string): string => path.relative(cwd, file) || file
  const at = ({ file, line, column }: Place): string =>
    [show(file), line, column].filter((each) => each !== undefined).join(':')
  const untyped = messages.find((each) => each.type === 'no-typescript')
  if (untyped)
    return failed(
      'no-typescript',
      `${show(untyped.file)} is TypeScript, which Node ${process.versions.node} cannot load. ${INSTALL_TSX}, or use Node 22.18 or later`,
    )
  const syntax = messages.find((each) => each.type === 'syntax')
  if (syntax) return failed('syntax', `${at(syntax)}: ${toSentence(syntax.text)}`, syntax)
  const missing = readMissing(error)
  if (missing) {
    const { importer, name } = missing
    const place = { file: importer, line: findLine(importer, name) }
    return failed(
      'missing-module',
      /^(?:\.|\/|[A-Za-z]:)/.test(name)
        ? `${at(place)}: imports ${name}, which does not exist.`
        : `${at(place)}: imports ${name}, which is not installed. Install it: npm install ${packageOf(name)}`,
      place,
    )
  }
  const text = toSentence(error instanceof Error ? error.message : String(error))
  if (error instanceof SyntaxError) {
    const place = readDecoration(error) ?? (await findSyntaxError(messages))
    // Node only removes types. A compiler also translates enumerations and parameter properties.
    const isUntranslated = 'code' in error && error.code === 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX'
    const remedy = isUntranslated ? ` ${INSTALL_TSX}` : ''
    return failed('syntax', `${place ? at(place) : show(entry)}: ${text}${remedy}`, place)
  }
  const place = readDecoration(error) ?? findFrame(error) ?? { file: entry }
  return failed('threw', `${at(place)}: threw an error while it was loaded: ${text}`, place)
}

const INSTALL_TSX = 'Install a package that compiles it: npm install --save-dev tsx'

/** Returns the first line of a text, with a full stop. */
function toSentence(text: string): string {
  const [line = ''] = text.trim().split('\n')
  return /[.!?]$/.test(line) ? line : `${line || 'no message'}.`
}

/** Returns the files whose absence may be the reason for an error. */
export function findMissingFiles(error: unknown): string[] {
  const missing = readMissing(error)
  if (!missing || !/^\.{1,2}\//.test(missing.name)) return []
  const file = path.resolve(path.dirname(missing.importer), missing.name)
  return [file, file.replace(/\.([cm]?)js$/, '.$1ts')]
}

/** Returns the import that failed, if Node could not find a module. */
function readMissing(
  error: unknown,
): { readonly importer: string; readonly name: string } | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined
  if (error.code !== 'ERR_MODULE_NOT_FOUND') return undefined
  const [, name = '', importer = ''] =
    /^Cannot find (?:package|module) '(.+?)' imported from (.+)$/m.exec(error.message) ?? []
  if (importer === '') return undefined
  const file = importer.startsWith('file:') ? fileURLToPath(importer) : importer
  const isFile = path.isAbsolute(name)
  const relative = path.relative(path.dirname(file), name).replaceAll(path.sep, '/')
  const written = relative.startsWith('.') ? relative : `./${relative}`
  return { importer: file, name: isFile ? written : name }
}

/** Returns the package of an import: `@google/adk` of `@google/adk/a2a`. */
function packageOf(name: string): string {
  return name
    .split('/')
    .slice(0, name.startsWith('@') ? 2 : 1)
    .join('/')
}

/** Returns the line of an import. */
function findLine(file: string, name: string): number | undefined {
  const lines = readFileSync(file, 'utf8').split('\n')
  const stem = name.replace(/\.[cm]?[jt]s$/, '')
  const index = lines.findIndex((line) => /['"]/.test(line) && line.includes(stem))
  return index === -1 ? undefined : index + 1
}

/** Reads the place that Node writes before some errors: a line with the file and the line number. */
function readDecoration(error: unknown): Place | undefined {
  if (!(error instanceof Error)) return undefined
  return readFirstLine(error.stack ?? '')
}

function readFirstLine(text: string): Place | undefined {
  const [, file = '', line = ''] = /^(\S.*?):(\d+)\n/.exec(text) ?? []
  if (file === '' || !/^(?:file:|\/|[A-Za-z]:)/.test(file)) return undefined
  return { file: file.startsWith('file:') ? fileURLToPath(file) : file, line: Number(line) }
}

/** Returns the first line of the application in the stack of an error. */
function findFrame(error: unknown): Place | undefined {
  if (!(error instanceof Error)) return undefined
  for (const [, where = '', line, column] of (error.stack ?? '').matchAll(FRAME)) {
    const file = where.startsWith('file:') ? fileURLToPath(where) : where
    const isInstalled = file.includes(`${path.sep}node_modules${path.sep}`)
    if (!isInstalled && !file.startsWith(OWN_CODE))
      return { file, line: Number(line), column: Number(column) }
  }
  return undefined
}

const OWN_CODE = fileURLToPath(new URL('../..', import.meta.url))
const FRAME = /(?:\(|at )((?:file:|\/|[A-Za-z]:)[^()\n]*?):(\d+):(\d+)\)?$/gm

/** Finds the file with a syntax error. Node names it only when it compiles the file alone. */
async function findSyntaxError(messages: readonly HookMessage[]): Promise<Place | undefined> {
  for (const message of messages.toReversed()) {
    if (message.type !== 'file') continue
    const args = ['--input-type=module', '--check', '-']
    const compiling = promisify(execFile)(process.execPath, args)
    compiling.child.stdin?.end(readFileSync(message.file))
    const stderr = await compiling.then(
      () => '',
      (failure: { stderr?: string }) => failure.stderr ?? '',
    )
    const [, line] = /^\S*:(\d+)\n/.exec(stderr) ?? []
    if (line !== undefined) return { file: message.file, line: Number(line) }
  }
  return undefined
}
