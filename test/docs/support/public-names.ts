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

/** Every name that the packages export, by subpath. */
export function readPublicNames(): PublicName[] {
  return ['adk-stream-protocol', 'gemini-emulator'].flatMap((name) => {
    const folder = path.join(ROOT, 'packages', name)
    const { exports } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8')) as {
      exports: Record<string, string | Record<string, string>>
    }
    return Object.entries(exports).flatMap(([subpath, target]) => {
      const source = typeof target === 'object' ? target['@adk-stream-protocol/source'] : undefined
      if (source === undefined) return []
      const module = `${name}${subpath.slice(1)}`
      return readNames(path.join(folder, source)).map((found) => ({ module, ...found }))
    })
  })
}

/** The names that a file declares, and those that it re-exports by name, as `index.ts` files do. */
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

/** Whether a name is described where it is declared: in the file, or in the one that it is re-exported from. */
function isDescribedIn(file: string, name: string): boolean {
  const text = readFileSync(file, 'utf8')
  if (isDescribed(text, name)) return true
  const target = findSource(text, name)
  return target !== undefined && isDescribedIn(path.resolve(path.dirname(file), target), name)
}

/** The file of the package that a name is re-exported from. */
export function findSource(text: string, name: string): string | undefined {
  const passedOn = new RegExp(`export (?:type )?\\{[^}]*\\b${name}\\b[^}]*\\} from '(\\.[^']+)'`)
  return passedOn.exec(text)?.[1]
}

/** A schema and its type share a name, and a sentence. */
export function isDescribed(text: string, name: string): boolean {
  const declaration = `export (?:declare )?(?:abstract )?(?:async )?(?:function|class|const|interface|type) ${name}\\b`
  return new RegExp(`\\*/\\n${declaration}`).test(text)
}
