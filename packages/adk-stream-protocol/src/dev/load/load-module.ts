import { existsSync, readFileSync, realpathSync } from 'node:fs'
import Module, { createRequire, register } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads'

import { z } from 'zod'

import { describeLoadError, findMissingFiles } from './describe-load-error.ts'
import type { HookData, HookMessage } from './hook-messages.ts'
import { LoadError } from './load-error.ts'

/** Loads the files of agents, and those that they import. */
export interface ModuleLoader {
  /** Imports a file. Throws a `LoadError`. */
  readonly load: (file: string) => Promise<Readonly<Record<string, unknown>>>
  /** The files of the application that were imported, or that an import names and that do not exist. */
  readonly files: () => readonly string[]
  /** The folders of `@google/adk` that were imported, with the first file that did. */
  readonly adkCopies: () => ReadonlyMap<string, string>
}

export interface LoadOptions {
  /** The folder that paths are relative to. */
  readonly cwd: string
  /** Imports modules of this package that import ADK. Called before the agent is loaded if both use the same copy of ADK. */
  readonly preload: () => Promise<unknown>
}

/**
 * Opens the loader of a process, for the file of an agent and others: TypeScript without a bundler, and with this agent's copy of ADK for
 * every import of ADK that this package makes afterwards.
 */
export async function openLoader(
  file: string,
  { cwd, preload }: LoadOptions,
): Promise<ModuleLoader> {
  const entry = pathToFileURL(realpathSync(file)).href
  await loadBeforeHooks(entry, preload)
  const { port1, port2 } = new MessageChannel()
  const data: HookData = { entry, port: port2 }
  register('./load-hooks.js', import.meta.url, { data, transferList: [port2] })
  port1.unref()
  process.setSourceMapsEnabled(true)
  const messages: HookMessage[] = []
  const missing: string[] = []
  requireAsImported((folder, importer) => messages.push({ type: 'adk', folder, importer }))
  const readMessages = (): readonly HookMessage[] => {
    for (let next = receiveMessageOnPort(port1); next; next = receiveMessageOnPort(port1))
      // The hooks send nothing else.
      messages.push(next.message as HookMessage)
    return messages
  }
  return {
    load: async (loaded) => {
      if (!existsSync(loaded))
        throw new LoadError('no-path', `${path.relative(cwd, loaded)} does not exist.`)
      try {
        // A module namespace object.
        return (await import(pathToFileURL(realpathSync(loaded)).href)) as Record<string, unknown>
      } catch (error) {
        missing.push(...findMissingFiles(error))
        throw await describeLoadError(error, { entry: loaded, cwd, messages: readMessages() })
      }
    },
    files: () => [...listFiles(readMessages()), ...missing],
    adkCopies: () => listCopies(readMessages()),
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

function listFiles(messages: readonly HookMessage[]): string[] {
  const imported = messages.flatMap((each) => (each.type === 'file' ? [each.file] : []))
  // The hooks do not see what a CommonJS module requires.
  const required = Object.keys(createRequire(import.meta.url).cache)
  const own = required.filter((file) => !/[\\/]node_modules[\\/]/.test(file))
  return [...new Set([...imported, ...own])]
}

function listCopies(messages: readonly HookMessage[]): Map<string, string> {
  const copies = new Map<string, string>()
  for (const message of messages)
    if (message.type === 'adk' && !copies.has(message.folder))
      copies.set(message.folder, message.importer)
  return copies
}
