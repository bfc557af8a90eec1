import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

import { LoadError } from './load-error.ts'

/** Returns the URL of a package that is installed for a file or beside this package, or undefined. */
export function findPackage(name: string, from: string | URL): string | undefined {
  for (const base of [from, import.meta.url]) {
    try {
      return pathToFileURL(createRequire(base).resolve(name)).href
    } catch {
      // Not installed there.
    }
  }
  return undefined
}

/** Returns the URL of the package with the page. Throws a `LoadError` that says how to install it. */
export function findStudio(agentFile: string): string {
  const found = findPackage(STUDIO, agentFile)
  if (found === undefined)
    throw new LoadError(
      'missing-module',
      `The page is in the package ${STUDIO}, which is not installed. Install it: npm install -D ${STUDIO}`,
    )
  return found
}

const STUDIO = 'adk-stream-protocol-studio'
