import path from 'node:path'

import type { Feature } from './features.ts'
import type { SourceFile } from './source-files.ts'

/** How the parts of the library depend on each other. `ceilings.json` has the same form. */
export interface Weave {
  /** The files of the server that use a feature without belonging to it, by the name of the feature. */
  readonly features: Readonly<Record<string, readonly string[]>>
  /** Folders that import each other in a cycle. */
  readonly knots: readonly (readonly string[])[]
  /** The number of files in the longest chains of imports in the server. */
  readonly chains: { readonly runtime: number; readonly withTypes: number }
}

export function measureWeave(files: readonly SourceFile[], features: readonly Feature[]): Weave {
  return {
    features: Object.fromEntries(
      features.map((feature) => [feature.name, findUsers(files, feature)]),
    ),
    knots: findKnots(files),
    chains: {
      runtime: findLongestChain(files, 'runtimeImports').length,
      withTypes: findLongestChain(files, 'imports').length,
    },
  }
}

/** Whether the server loads a file. The contract of stores is for tests of stores, and `dev` reports about agents. */
function isServerSide({ path: file }: SourceFile): boolean {
  return !/^(?:client|dev|react|store\/contract)\//.test(file)
}

/** Returns the paths of the server's files that use a feature without belonging to it. */
function findUsers(files: readonly SourceFile[], { own, identifiers }: Feature): string[] {
  return files
    .filter((file) => isServerSide(file) && !own.some((start) => file.path.startsWith(start)))
    .filter(({ code }) => identifiers.test(code))
    .map((file) => file.path)
}

/**
 * Returns the groups of folders that import each other in a cycle. A file beside folders counts as a folder of its own: it is either
 * below them or above them, and another file beside it can be the opposite.
 */
function findKnots(files: readonly SourceFile[]): string[][] {
  const folders = new Set(files.map((file) => path.posix.dirname(file.path)))
  const parents = new Set([...folders].map((folder) => path.posix.dirname(folder)))
  const folderOf = (file: string): string => {
    const folder = path.posix.dirname(file)
    return parents.has(folder) ? file : folder
  }
  const targets = new Map<string, Set<string>>()
  for (const file of files) {
    const folder = folderOf(file.path)
    const known = targets.get(folder) ?? new Set()
    targets.set(folder, known)
    for (const target of file.imports) if (folderOf(target) !== folder) known.add(folderOf(target))
  }
  const reached = new Map([...targets.keys()].map((folder) => [folder, reach(targets, folder)]))
  const knots = [...reached.keys()].map((folder) =>
    [...(reached.get(folder) ?? [])].filter((other) => reached.get(other)?.has(folder)).toSorted(),
  )
  // Each member of a knot has found it.
  return [
    ...new Map(knots.filter(({ length }) => length > 0).map((knot) => [knot[0], knot])).values(),
  ]
}

function reach(targets: ReadonlyMap<string, ReadonlySet<string>>, start: string): Set<string> {
  const reached = new Set(targets.get(start))
  // A set also iterates over what is added meanwhile.
  for (const each of reached) for (const target of targets.get(each) ?? []) reached.add(target)
  return reached
}

/** Returns the longest chain of imports that starts in a file of the server. */
export function findLongestChain(
  files: readonly SourceFile[],
  kind: 'imports' | 'runtimeImports',
): readonly string[] {
  const byPath = new Map(files.map((file) => [file.path, file]))
  const found = new Map<string, readonly string[]>()
  const follow = (file: string): readonly string[] => {
    const known = found.get(file)
    if (known) return known
    const chain = [file, ...longest((byPath.get(file)?.[kind] ?? []).map(follow))]
    found.set(file, chain)
    return chain
  }
  return longest(files.filter(isServerSide).map((file) => follow(file.path)))
}

function longest(chains: readonly (readonly string[])[]): readonly string[] {
  return chains.reduce((one, other) => (other.length > one.length ? other : one), [])
}

/** Returns a sentence for each difference between what was measured and what is allowed. */
export function compareWeave(measured: Weave, ceilings: Weave): string[] {
  const names = new Set([...Object.keys(measured.features), ...Object.keys(ceilings.features)])
  const chains = ['runtime', 'withTypes'] as const
  return [
    ...[...names].flatMap((name) =>
      compareFiles(`Use of ${name} outside its own files`, {
        measured: measured.features[name] ?? [],
        allowed: ceilings.features[name] ?? [],
      }),
    ),
    ...compareKnots(measured.knots, ceilings.knots),
    ...chains.flatMap((kind) =>
      compareLength(`The longest chain of imports (${kind})`, {
        measured: measured.chains[kind],
        allowed: ceilings.chains[kind],
      }),
    ),
  ]
}

/** Returns whether nothing has become worse. A file that has moved makes nothing worse. */
export function isWithin(measured: Weave, ceilings: Weave): boolean {
  const countFolders = ({ knots }: Weave): number => knots.flat().length
  return (
    Object.entries(measured.features).every(
      ([name, files]) => files.length <= (ceilings.features[name]?.length ?? 0),
    ) &&
    countFolders(measured) <= countFolders(ceilings) &&
    measured.chains.runtime <= ceilings.chains.runtime &&
    measured.chains.withTypes <= ceilings.chains.withTypes
  )
}

interface Compared<Value> {
  readonly measured: Value
  readonly allowed: Value
}

function compareFiles(what: string, { measured, allowed }: Compared<readonly string[]>): string[] {
  const added = measured.filter((each) => !allowed.includes(each))
  const gone = allowed.filter((each) => !measured.includes(each))
  return [
    ...added.map((each) => `${what}: ${each} is new.`),
    ...gone.map((each) => `${what}: no longer ${each}. Lower the ceiling to ${measured.length}.`),
  ]
}

function compareLength(what: string, { measured, allowed }: Compared<number>): string[] {
  if (measured > allowed) return [`${what} has ${measured} files, and may have ${allowed}.`]
  if (measured < allowed) return [`${what} has ${measured} files. Lower the ceiling to it.`]
  return []
}

function compareKnots(measured: Weave['knots'], allowed: Weave['knots']): string[] {
  const added = measured.filter(
    (knot) => !allowed.some((other) => knot.every((folder) => other.includes(folder))),
  )
  if (added.length > 0) return added.map((knot) => `A new cycle of folders: ${knot.join(', ')}.`)
  const [size, ceiling] = [measured.flat().length, allowed.flat().length]
  return size < ceiling || measured.length > allowed.length
    ? [`Folders in cycles: ${size} instead of ${ceiling}. Lower the ceiling.`]
    : []
}
