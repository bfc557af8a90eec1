import { existsSync, readFileSync, realpathSync } from 'node:fs'
import Module, { createRequire, register } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads'

import { z } from 'zod'

import { describeLoadError } from './describe-load-error.ts'
import type { HookData, HookMessage } from './hook-messages.ts'
import { LoadError } from './load-error.ts'

/** The module of an agent. */
export interface LoadedModule {
  readonly exports: Readonly<Record<string, unknown>>
  /** The files of the application that were imported. */
  readonly files: readonly string[]
  /** The folders of `@google/adk` that were imported, with the first file that did. */
  readonly adkCopies: ReadonlyMap<string, string>
}

export interface LoadOptions {
  /** The folder that paths are relative to. */
  readonly cwd: string
  /** Default: `.env` beside the file and in `cwd`. */
  readonly envFiles: readonly string[] | undefined
  /** Imports modules of this package that import ADK. Called before the agent is loaded if both use the same copy of ADK. */
  readonly preload: () => Promise<unknown>
}

/**
 * Imports the file of an agent, once per process: TypeScript without a bundler, and with the agent's copy of ADK for every import of ADK
 * that this package makes afterwards. Throws a `LoadError`.
 */
export async function loadModule(
  file: string,
  { cwd, envFiles, preload }: LoadOptions,
): Promise<LoadedModule> {
  for (const envFile of envFiles ?? defaultEnvFiles(file, cwd)) loadEnvFile(envFile, cwd)
  const entry = pathToFileURL(realpathSync(file)).href
  await loadBeforeHooks(entry, preload)
  const { port1, port2 } = new MessageChannel()
  const data: HookData = { entry, port: port2 }
  register('./load-hooks.js', import.meta.url, { data, transferList: [port2] })
  port1.unref()
  process.setSourceMapsEnabled(true)
  const messages: HookMessage[] = []
  requireAsImported((folder, importer) => messages.push({ type: 'adk', folder, importer }))
  const readMessages = (): void => {
    for (let next = receiveMessageOnPort(port1); next; next = receiveMessageOnPort(port1))
      // The hooks send nothing else.
      messages.push(next.message as HookMessage)
  }
  try {
    // A module namespace object.
    const exports = (await import(entry)) as Record<string, unknown>
    readMessages()
    return { exports, files: listFiles(messages), adkCopies: listCopies(messages) }
  } catch (error) {
    readMessages()
    throw await describeLoadError(error, { entry: file, cwd, messages })
  }
}

/**
 * Imports ADK as the agent will. A module that is loaded with hooks takes twice the time, and ADK has hundreds. Does nothing if the
 * agent has no ADK: its import then fails with an error that names the file.
 */
async function loadBeforeHooks(entry: string, preload: () => Promise<unknown>): Promise<void> {
  const folder = findAdk(entry)
  if (folder === undefined) return
  const manifest = Manifest.safeParse(
    JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8')),
  )
  // A version with another layout, which is refused later.
  if (!manifest.success) return
  await import(pathToFileURL(path.join(folder, manifest.data.exports['.'].import)).href)
  if (folder === findAdk(import.meta.url)) await preload()
}

const Manifest = z.object({ exports: z.object({ '.': z.object({ import: z.string() }) }) })

/** Returns the folder of ADK for a module. */
function findAdk(from: string): string | undefined {
  try {
    const file = createRequire(from).resolve('@google/adk')
    return /^.*[\\/]@google[\\/]adk(?=[\\/])/.exec(file)?.[0]
  } catch {
    return undefined
  }
}

/**
 * Lets `require('@google/adk')` return the module that `import` returns. ADK has other files for CommonJS, which would be a second
 * copy. Node 20.19 and later can require ECMAScript modules. Node has no public way to change what `require` finds before 22.15.
 */
function requireAsImported(onFound: (folder: string, importer: string) => void): void {
  // Node calls it with the request and the module that requires it.
  type Resolve = (request: string, parent: { readonly filename?: string } | null) => string
  const resolve = Reflect.get(Module, '_resolveFilename') as Resolve
  const resolveAsImported: Resolve = (request, parent, ...rest) => {
    const file = resolve.call(Module, request, parent, ...rest)
    const [, folder, inner] = CJS_FILE.exec(file) ?? []
    if (!/^@google\/adk(?:\/|$)/.test(request) || folder === undefined) return file
    onFound(folder, parent?.filename ?? '')
    return path.join(folder, 'dist/esm', inner ?? '')
  }
  Reflect.set(Module, '_resolveFilename', resolveAsImported)
}

const CJS_FILE = /^(.*[\\/]@google[\\/]adk)[\\/]dist[\\/]cjs[\\/](.+)$/

/** The agent's own file wins: a variable that is set is not changed. */
function defaultEnvFiles(file: string, cwd: string): string[] {
  const files = [path.dirname(file), cwd].map((folder) => path.join(folder, '.env'))
  return [...new Set(files)].filter((each) => existsSync(each))
}

function loadEnvFile(envFile: string, cwd: string): void {
  try {
    process.loadEnvFile(path.resolve(cwd, envFile))
  } catch (cause) {
    const reason = existsSync(path.resolve(cwd, envFile)) ? 'cannot be read' : 'does not exist'
    throw new LoadError('env-file', `The file ${envFile} with environment variables ${reason}.`, {
      cause,
    })
  }
}

function listFiles(messages: readonly HookMessage[]): string[] {
  return [...new Set(messages.flatMap((each) => (each.type === 'file' ? [each.file] : [])))]
}

function listCopies(messages: readonly HookMessage[]): Map<string, string> {
  const copies = new Map<string, string>()
  for (const message of messages)
    if (message.type === 'adk' && !copies.has(message.folder))
      copies.set(message.folder, message.importer)
  return copies
}
