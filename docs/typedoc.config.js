import { readFileSync } from 'node:fs'

import { Comment, CommentTag, Context, ReflectionKind } from 'typedoc'
import ts from 'typescript'

const PACKAGES = ['adk-stream-protocol', 'gemini-emulator', 'studio']

/** @typedef {{ name: string, exports: Record<string, string | Record<string, string>> }} Manifest */

/** What users import, with the source that it is. */
const modules = PACKAGES.flatMap((folder) => {
  const file = new URL(`../packages/${folder}/package.json`, import.meta.url)
  const manifest = /** @type {Manifest} */ (JSON.parse(readFileSync(file, 'utf8')))
  return Object.entries(manifest.exports).flatMap(([subpath, target]) => {
    // A plug-in of the studio's page is compiled with the page, in this repository.
    const isPublished = typeof target === 'object' && 'default' in target
    const source = isPublished && target['@adk-stream-protocol/source']
    return source
      ? [{ name: `${manifest.name}${subpath.slice(1)}`, source: `${folder}/${source.slice(2)}` }]
      : []
  })
})

/** @param {{ name: string }} module */
function isForStores({ name }) {
  return name === 'adk-stream-protocol/store/contract'
}

/**
 * Calls modules what users call them; typedoc calls them by their files.
 *
 * @param {import('typedoc').Application} application
 */
function nameModules({ converter }) {
  const names = new Map(
    modules.map(({ name, source }) => [source.replace(/(?:\/index)?\.tsx?$/, ''), name]),
  )
  converter.on('createDeclaration', (_, reflection) => {
    if (reflection.parent?.isProject())
      reflection.name = names.get(reflection.name) ?? reflection.name
  })
}

/** The heading of the types that signatures mention and that are not exported. */
const NOT_EXPORTED = 'Types that are not exported'

/**
 * Adds the types of the packages that signatures mention and that no module exports, so that the reference explains every type.
 * typedoc has no event for references, so this replaces the method that creates them.
 *
 * @param {import('typedoc').Application} application
 */
function addMentionedTypes({ converter }) {
  /** @type {{ symbol: ts.Symbol, scope: import('typedoc').Reflection, program: ts.Program }[]} */
  const mentions = []
  // Called below with the `this` of each context.
  // oxlint-disable-next-line typescript/unbound-method
  const create = Context.prototype.createSymbolReference
  Context.prototype.createSymbolReference = function (symbol, context, name) {
    if (isOwnType(symbol)) mentions.push({ symbol, scope: context.scope, program: context.program })
    return create.call(this, symbol, context, name)
  }
  const convert = (/** @type {import('typedoc').Context} */ { project }) => {
    // Converting a type adds the types that it mentions to the list.
    for (const { symbol, scope, program } of mentions) {
      const module = findModule(scope)
      const context = new Context(converter, [program], project, module)
      if (!module || context.getReflectionFromSymbol(symbol)) continue
      context.setActiveProgram(program)
      const known = new Set(module.children)
      converter.convertSymbol(context, symbol)
      for (const added of module.children ?? []) if (!known.has(added)) putInGroup(added)
    }
  }
  converter.on('resolveBegin', convert, 1_000)
}

/**
 * Returns the module of a reflection. Returns undefined if the reference does not show the reflection.
 *
 * @param {import('typedoc').Reflection | undefined} reflection
 * @returns {import('typedoc').DeclarationReflection | undefined}
 */
function findModule(reflection) {
  if (!reflection || reflection.flags.isPrivate) return undefined
  if (reflection.kindOf(ReflectionKind.Module)) return reflection
  return findModule(reflection.parent)
}

/** @param {ts.Symbol} symbol */
function isOwnType({ flags, declarations = [] }) {
  const isType = flags & (ts.SymbolFlags.Interface | ts.SymbolFlags.TypeAlias)
  return (
    isType !== 0 &&
    declarations.some((each) => !each.getSourceFile().fileName.includes('/node_modules/'))
  )
}

/** @param {import('typedoc').Reflection} reflection */
function putInGroup(reflection) {
  reflection.comment ??= new Comment()
  reflection.comment.blockTags.push(
    new CommentTag('@group', [{ kind: 'text', text: NOT_EXPORTED }]),
  )
}

// Read by typedoc.
// oxlint-disable-next-line import/no-default-export
export default {
  name: 'API',
  // typedoc describes a name that two modules export in the first one. The contract of stores is not for applications.
  entryPoints: [
    ...modules.filter((module) => !isForStores(module)),
    ...modules.filter(isForStores),
  ].map(({ source }) => `../packages/${source}`),
  tsconfig: 'tsconfig.json',
  plugin: ['typedoc-plugin-markdown', nameModules, addMentionedTypes],
  out: 'api',
  readme: 'none',
  router: 'module',
  // Lines and commits change with every commit; the reference changes with the types.
  disableSources: true,
  excludePrivate: true,
  excludeInternal: true,
  excludeExternals: true,
  hideGenerator: true,
  hidePageHeader: true,
  hideBreadcrumbs: true,
  // Names that differ in case alone would share GitHub's anchor.
  useHTMLAnchors: true,
  sort: ['alphabetical'],
  parametersFormat: 'table',
  interfacePropertiesFormat: 'table',
  classPropertiesFormat: 'table',
  typeAliasPropertiesFormat: 'table',
  tableColumnSettings: {
    hideInherited: true,
    hideOverrides: true,
    hideModifiers: true,
    hideSources: true,
  },
  validation: { notExported: false },
}
