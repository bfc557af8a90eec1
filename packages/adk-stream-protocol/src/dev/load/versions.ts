import { readFileSync } from 'node:fs'
import path from 'node:path'

import { z } from 'zod'

import { describeUntestedAdk, TESTED_ADK } from '../../shared/tested-adk.ts'
import { LoadError } from './load-error.ts'

const Manifest = z.object({
  version: z.string(),
  peerDependencies: z.record(z.string(), z.string()).default({}),
})

/** This package. */
const OWN = readManifest(new URL('../../../package.json', import.meta.url))

/** The version of this package. */
export const OWN_VERSION = OWN.version

/** An installed copy of ADK. */
export interface AdkVersion {
  readonly version: string
  readonly folder: string
  /** The version with which this package is tested. */
  readonly tested: string
  /** What the developer should know about the version. */
  readonly notice: string | undefined
}

/** Returns the copy of ADK that an agent imports. Throws a `LoadError` if there are several, or one that this package cannot use. */
export function readAdkVersion(
  copies: ReadonlyMap<string, string>,
  cwd: string,
): AdkVersion | undefined {
  const found = Array.from(copies, ([folder, importer]) => ({
    folder,
    importer: path.relative(cwd, importer),
    version: readManifest(path.join(folder, 'package.json')).version,
  }))
  const [first, second] = found
  if (!first) return undefined
  if (second)
    throw new LoadError(
      'two-copies',
      `There are two copies of @google/adk: ${first.folder} (${first.version}), imported by ${first.importer}, and ${second.folder} (${second.version}), imported by ${second.importer}. Install one version in one place: \`npm ls @google/adk\` lists them.`,
    )
  const { version, folder } = first
  const range = OWN.peerDependencies['@google/adk'] ?? ''
  if (majorOf(version) !== majorOf(range))
    throw new LoadError(
      'unsupported-adk',
      `@google/adk ${version} in ${folder} is not supported: adk-stream-protocol ${OWN.version} needs ${range}. Install it: npm install @google/adk@${TESTED_ADK}`,
    )
  return { version, folder, tested: TESTED_ADK, notice: describeUntestedAdk(version) }
}

function majorOf(version: string): string {
  return /\d+/.exec(version)?.[0] ?? ''
}

function readManifest(file: URL | string): z.infer<typeof Manifest> {
  return Manifest.parse(JSON.parse(readFileSync(file, 'utf8')))
}
