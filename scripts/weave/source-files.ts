import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'

const SOURCE = path.join(import.meta.dirname, '../../packages/adk-stream-protocol/src')

export interface SourceFile {
  /** Relative to the source folder of the library, with `/`. */
  readonly path: string
  /** The text without comments. */
  readonly code: string
  /** The files of the library that it imports. Imports of types count. */
  readonly imports: readonly string[]
  /** The files of the library that are loaded before it. */
  readonly runtimeImports: readonly string[]
}

/** Reads all source files of the library. */
export function readSourceFiles(): SourceFile[] {
  return readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file))
    .map((file) => readSourceFile(file.replaceAll(path.sep, '/')))
    .toSorted((one, other) => (one.path < other.path ? -1 : 1))
}

function readSourceFile(file: string): SourceFile {
  const code = removeComments(readFileSync(path.join(SOURCE, file), 'utf8'))
  const resolve = (target: string): string => path.posix.join(path.posix.dirname(file), target)
  const statements = [...code.matchAll(/^(?:import|export) ([^;']*?)from '(\.[^']+)'/gm)].map(
    ([, names = '', target = '']) => ({ names, target: resolve(target) }),
  )
  return {
    path: file,
    code,
    imports: statements.map(({ target }) => target),
    runtimeImports: statements
      .filter(({ names }) => !isForTypes(names))
      .map(({ target }) => target),
  }
}

function isForTypes(names: string): boolean {
  if (names.startsWith('type ')) return true
  const listed = /^\{([^}]*)\}/.exec(names)?.[1]?.split(',') ?? [names]
  return listed.every((name) => /^\s*(?:type |$)/.test(name))
}

/** A string, a template, a regular expression or a comment. The first three can contain `//`. */
const TOKEN =
  /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\[^]|[^`\\])*`|(?<=[(,=:[!&|?{};]\s*)\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/|\/\/[^\n]*|\/\*[^]*?\*\//g

/** Returns TypeScript code without its comments, and without the comments of SQL in its templates. */
export function removeComments(code: string): string {
  return code.replaceAll(TOKEN, (token) => {
    if (token.startsWith('//') || token.startsWith('/*')) return ''
    return token.startsWith('`') ? token.replaceAll(/^\s*-- .*$/gm, '') : token
  })
}
