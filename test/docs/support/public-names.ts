import { readFileSync } from 'node:fs'
import path from 'node:path'

import { ROOT } from './pages.ts'

export interface PublicName {
  /** The module that users import from, such as `adk-stream-protocol/server`. */
  readonly module: string
  readonly name: string
  /** Whether its declaration has a JSDoc sentence. */
  readonly isDescribed: boolean
}

/** Returns every name that the packages export, by subpath. */
export function readPublicNames(): PublicName[] {
  return ['adk-stream-protocol', 'gemini-emulator', 'studio'].flatMap((place) => {
    const folder = path.join(ROOT, 'packages', place)
    const { name, exports } = JSON.parse(
      readFileSync(path.join(folder, 'package.json'), 'utf8'),
    ) as {
      name: string
      exports: Record<string, string | Record<string, string>>
    }
    return Object.entries(exports).flatMap(([subpath, target]) => {
      const isPublished = typeof target === 'object' && 'default' in target
      const source = isPublished ? target['@adk-stream-protocol/source'] : undefined
      if (source === undefined) return []
      const module = `${name}${subpath.slice(1)}`
      return readNames(path.join(folder, source)).map((found) => ({ module, ...found }))
    })
  })
}

/** Returns the names that a file declares or re-exports by name. */
function readNames(file: string): Omit<PublicName, 'module'>[] {
  const text = readFileSync(file, 'utf8')
  const own = [
    ...text.matchAll(/^export (?:async )?(?:function|class|const|interface|type) (\w+)/gm),
  ]
  const passedOn = [...text.matchAll(/^export (?:type )?\{([^}]*)\} from '([^']+)'/gm)]
  return [
    ...own.map(([, name = '']) => ({ name, isDescribed: isDescribedIn(file, name) })),
    ...passedOn.flatMap(([, names = '', target = '']) => {
      const declared = path.resolve(path.dirname(file), target)
      return names
        .split(',')
        .map((name) => name.trim().replace(/^type /, ''))
        .filter((name) => name !== '')
        .map((name) => ({ name, isDescribed: isDescribedIn(declared, name) }))
    }),
  ]
}

/** Returns whether the declaration of a name has a JSDoc sentence, in the file or in the one that it is re-exported from. */
function isDescribedIn(file: string, name: string): boolean {
  const text = readFileSync(file, 'utf8')
  if (isDescribed(text, name)) return true
  const target = findSource(text, name)
  return target !== undefined && isDescribedIn(path.resolve(path.dirname(file), target), name)
}

/** Returns the file from which a name is re-exported. */
export function findSource(text: string, name: string): string | undefined {
  const passedOn = new RegExp(`export (?:type )?\\{[^}]*\\b${name}\\b[^}]*\\} from '(\\.[^']+)'`)
  return passedOn.exec(text)?.[1]
}

/** Returns whether a name has a JSDoc sentence. A schema and its type share one. */
export function isDescribed(text: string, name: string): boolean {
  const declaration = `export (?:declare )?(?:abstract )?(?:async )?(?:function|class|const|interface|type) ${name}\\b`
  return new RegExp(`\\*/\\n${declaration}`).test(text)
}
