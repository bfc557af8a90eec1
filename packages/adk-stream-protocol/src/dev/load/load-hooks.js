// Loads the files of an agent: TypeScript without a bundler, and one copy of ADK. Plain JavaScript, because Node.js must be able to
// start the file as a thread both from `src` and from `dist`.
import { existsSync, readFileSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

/**
 * @typedef {import('./hook-messages.ts').HookData} HookData
 * @typedef {import('./hook-messages.ts').HookMessage} HookMessage
 * @typedef {{ transform: (source: string, options: object) => Promise<{ code: string }> }} Esbuild
 */

/** The code of this package. */
const OWN_CODE = new URL('../..', import.meta.url).href

/** @type {HookData} */
let data

/** @param {HookData} given */
export function initialize(given) {
  data = given
}

/** @param {HookMessage} message */
function report(message) {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- A port of a thread, not a window.
  data.port.postMessage(message)
}

/** @type {import('node:module').ResolveHook} */
export async function resolve(specifier, context, nextResolve) {
  const { parentURL } = context
  const isOwn = parentURL?.startsWith(OWN_CODE) ?? false
  const isShared = /^@google\/(?:adk|genai)(?:\/|$)/.test(specifier)
  let found
  try {
    // The bridge uses the agent's copy of ADK, which may not be the one beside this package. An agent that creates a bridge uses this one.
    if (isOwn && isShared)
      found = await nextResolve(specifier, { ...context, parentURL: data.entry })
    else if (!isOwn && specifier.startsWith('adk-stream-protocol/'))
      found = await nextResolve(specifier, { ...context, parentURL: OWN_CODE })
  } catch {
    // Not installed there.
  }
  // Node writes the context of the first attempt into `context`.
  found ??= await resolveLoosely(
    specifier,
    { ...context, ...(parentURL !== undefined && { parentURL }) },
    nextResolve,
  )
  if (/^@google\/adk(?:\/|$)/.test(specifier)) reportCopy(found.url, parentURL)
  return found
}

/**
 * @param {string} url
 * @param {string | undefined} importer
 */
function reportCopy(url, importer) {
  const [folder] = /^file:.*?\/@google\/adk(?=\/)(?!.*\/@google\/adk\/)/.exec(url) ?? []
  if (folder !== undefined)
    report({
      type: 'adk',
      folder: fileURLToPath(folder),
      importer: importer === undefined ? '' : toPath(importer),
    })
}

/**
 * Resolves as Node does. For files of the application, also as TypeScript and bundlers do: `paths` of tsconfig.json, `.js` for a
 * `.ts` file, and names without an extension.
 * @type {import('node:module').ResolveHook}
 */
async function resolveLoosely(specifier, context, nextResolve) {
  const { parentURL } = context
  if (!parentURL?.startsWith('file:') || isInstalled(parentURL))
    return nextResolve(specifier, context)
  const mapped = mapPaths(specifier, path.dirname(toPath(parentURL))).map(findSource)
  const file = mapped.find((found) => found !== undefined)
  if (file !== undefined) return nextResolve(pathToFileURL(file).href, context)
  try {
    return await nextResolve(specifier, context)
  } catch (error) {
    const source = /^\.{0,2}\//.test(specifier)
      ? findSource(fileURLToPath(new URL(specifier, parentURL)))
      : undefined
    if (source === undefined) throw error
    return nextResolve(pathToFileURL(source).href, context)
  }
}

/**
 * Returns the file that a path without an extension, or with that of its compiled file, means.
 * @param {string} target
 */
function findSource(target) {
  const { dir, name, ext } = path.parse(target)
  const stem = path.join(dir, name)
  const compiled = { '.js': ['.ts', '.tsx'], '.mjs': ['.mts'], '.cjs': ['.cts'], '.jsx': ['.tsx'] }
  const candidates = [
    target,
    ...(compiled[/** @type {keyof typeof compiled} */ (ext)] ?? []).map((each) => stem + each),
    ...SOURCES.map((each) => target + each),
    ...SOURCES.map((each) => path.join(target, `index${each}`)),
  ]
  return candidates.find((file) => existsSync(file) && statSync(file).isFile())
}

const SOURCES = ['.ts', '.tsx', '.mts', '.cts', '.js', '.mjs', '.cjs', '.json']

/**
 * Returns the files that `paths` of tsconfig.json maps a specifier to.
 * @param {string} specifier
 * @param {string} folder
 * @returns {string[]}
 */
function mapPaths(specifier, folder) {
  if (/^(?:\.|\/|[a-z]+:)/i.test(specifier)) return []
  const { baseUrl, paths, at } = readTsconfig(folder)
  const root = path.resolve(at, baseUrl ?? '.')
  for (const [pattern, targets] of Object.entries(paths ?? {})) {
    const [head = '', tail] = pattern.split('*')
    const isMatch =
      tail === undefined
        ? specifier === pattern
        : specifier.startsWith(head) && specifier.endsWith(tail)
    if (!isMatch) continue
    const rest = specifier.slice(head.length, specifier.length - (tail ?? '').length)
    return targets.map((target) =>
      path.resolve(
        root,
        target.replace('*', () => rest),
      ),
    )
  }
  return baseUrl === undefined ? [] : [path.resolve(root, specifier)]
}

/**
 * @typedef {{ at: string, text: string, baseUrl?: string, paths?: Record<string, string[]> }} Tsconfig
 * @type {Map<string, Tsconfig>}
 */
const tsconfigs = new Map()

/**
 * Returns the nearest tsconfig.json. `extends` is not followed.
 * @param {string} folder
 * @returns {Tsconfig}
 */
function readTsconfig(folder) {
  const known = tsconfigs.get(folder)
  if (known) return known
  const file = path.join(folder, 'tsconfig.json')
  const parent = path.dirname(folder)
  /** @type {Tsconfig} */
  let found = { at: folder, text: '{}' }
  if (existsSync(file)) found = parseTsconfig(folder, readFileSync(file, 'utf8'))
  else if (parent !== folder) found = readTsconfig(parent)
  tsconfigs.set(folder, found)
  return found
}

/**
 * @param {string} at
 * @param {string} text
 * @returns {Tsconfig}
 */
function parseTsconfig(at, text) {
  const plain = text
    .replaceAll(/("(?:\\.|[^"\\])*")|\/\/[^\n]*|\/\*[^]*?\*\//g, '$1')
    .replaceAll(/("(?:\\.|[^"\\])*")|,(?=\s*[}\]])/g, '$1')
  try {
    const { compilerOptions = {} } =
      /** @type {{ compilerOptions?: Pick<Tsconfig, 'baseUrl' | 'paths'> & Record<string, unknown> }} */ (
        JSON.parse(plain)
      )
    const { baseUrl, paths, ...others } = compilerOptions
    return {
      at,
      text: JSON.stringify({ compilerOptions: others }),
      ...(baseUrl !== undefined && { baseUrl }),
      ...(paths !== undefined && { paths }),
    }
  } catch {
    // The compiler reports an invalid file. The agent may not need it.
    return { at, text: '{}' }
  }
}

/** @type {import('node:module').LoadHook} */
export async function load(url, context, nextLoad) {
  if (!url.startsWith('file:') || url.startsWith(OWN_CODE) || isInstalled(url))
    return nextLoad(url, context)
  const file = toPath(url)
  report({ type: 'file', file })
  if (!/\.[cm]?tsx?$/.test(file)) return nextLoad(url, context)
  const esbuild = await findEsbuild()
  if (esbuild) return transform(esbuild, file)
  // Since Node 22.10.
  if (Reflect.get(process.features, 'typescript')) return nextLoad(url, context)
  report({ type: 'no-typescript', file })
  throw new Error('This version of Node cannot load TypeScript.')
}

/**
 * @param {Esbuild} esbuild
 * @param {string} file
 * @returns {Promise<import('node:module').LoadFnOutput>}
 */
async function transform(esbuild, file) {
  const source = readFileSync(file, 'utf8')
  const format = isCommonJs(file, source) ? 'commonjs' : 'module'
  try {
    const { code } = await esbuild.transform(source, {
      loader: file.endsWith('x') ? 'tsx' : 'ts',
      format: format === 'module' ? 'esm' : 'cjs',
      target: 'node20',
      sourcemap: 'inline',
      sourcefile: file,
      tsconfigRaw: readTsconfig(path.dirname(file)).text,
      logLevel: 'silent',
    })
    return { format, source: code, shortCircuit: true }
  } catch (error) {
    const [problem] =
      /** @type {{ errors?: { text: string, location?: { line: number, column: number } }[] }} */ (
        error
      ).errors ?? []
    if (problem?.location)
      report({
        type: 'syntax',
        file,
        line: problem.location.line,
        column: problem.location.column + 1,
        text: problem.text,
      })
    throw error
  }
}

/**
 * @param {string} file
 * @param {string} source
 */
function isCommonJs(file, source) {
  if (/\.[cm]tsx?$/.test(file)) return file.includes('.cts')
  return (
    !/^\s*(?:import|export)\b|\bimport\.meta\b|^\s*await\b/m.test(source) &&
    /\b(?:require\s*\(|module\.exports|exports\.)/.test(source)
  )
}

/** @type {Promise<Esbuild | undefined> | undefined} */
let esbuild

/** Finds esbuild where the agent is installed, itself or below a tool that contains it, or beside this package. */
function findEsbuild() {
  esbuild ??= (async () => {
    const require = createRequire(data.entry)
    for (const user of ['', 'tsx', 'vite', 'vitest', '@google/adk-devtools']) {
      try {
        const from = user === '' ? require : createRequire(require.resolve(`${user}/package.json`))
        return await importEsbuild(from.resolve('esbuild'))
      } catch {
        // Not there.
      }
    }
    try {
      return await importEsbuild(createRequire(import.meta.url).resolve('esbuild'))
    } catch {
      return undefined
    }
  })()
  return esbuild
}

/**
 * @param {string} file
 * @returns {Promise<Esbuild>}
 */
async function importEsbuild(file) {
  const found = /** @type {Esbuild & { default?: Esbuild }} */ (
    await import(pathToFileURL(file).href)
  )
  return found.default ?? found
}

/** @param {string} url */
function isInstalled(url) {
  return url.includes('/node_modules/')
}

/** @param {string} url */
function toPath(url) {
  return fileURLToPath(url.replace(/[?#].*/, ''))
}
