import { existsSync, readdirSync, statSync } from 'node:fs'
import path from 'node:path'

import { LoadError } from './load-error.ts'

/** In the order in which they are preferred: a compiled file may be beside its source. */
const EXTENSIONS = ['.ts', '.mts', '.cts', '.js', '.mjs', '.cjs']
/** The names of an agent's file, as ADK looks for them. */
const NAMES = ['app', 'agent']

/** Returns the files of the agents at all paths of a command, which are the current folder if it names none. */
export function findAllAgentFiles(places: readonly string[], cwd: string): string[] {
  const all = places.length === 0 ? ['.'] : places
  return [...new Set(all.flatMap((place) => findAgentFiles(place, cwd)))]
}

/**
 * Returns the files of the agents at a path: the file itself, or `app` or `agent` in the folder, in its `src`, or in each of its
 * sub-folders.
 */
export function findAgentFiles(place: string, cwd: string): string[] {
  const target = path.resolve(cwd, place)
  if (!existsSync(target)) throw new LoadError('no-path', `${place} does not exist.`)
  if (!statSync(target).isDirectory()) {
    if (EXTENSIONS.includes(path.extname(target))) return [target]
    throw new LoadError(
      'no-path',
      `${place} is not a JavaScript or TypeScript file (${EXTENSIONS.join(', ')}).`,
    )
  }
  const own = findIn(target) ?? findIn(path.join(target, 'src'))
  if (own !== undefined) return [own]
  const below = listFolders(target).flatMap((folder) => findIn(folder) ?? [])
  if (below.length > 0) return below
  const shown = path.relative(cwd, target) || '.'
  throw new LoadError(
    'no-agent',
    `There is no agent in ${shown}: no agent.ts, agent.js, app.ts or app.js in it, in ${path.join(shown, 'src')} or in one of its sub-folders. Name the file of the agent.`,
  )
}

function findIn(folder: string): string | undefined {
  const files = NAMES.flatMap((name) => EXTENSIONS.map((ext) => path.join(folder, name + ext)))
  return files.find((file) => existsSync(file) && statSync(file).isFile())
}

function listFolders(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !/^(?:\.|node_modules$)/.test(entry.name))
    .map((entry) => path.join(folder, entry.name))
    .toSorted()
}
