import { readFileSync } from 'node:fs'

const PACKAGES = ['adk-stream-protocol', 'gemini-emulator']

/** @typedef {{ exports: Record<string, string | Record<string, string>> }} Manifest */

/** What users import, with the source that it is. */
const modules = PACKAGES.flatMap((name) => {
  const file = new URL(`../packages/${name}/package.json`, import.meta.url)
  const manifest = /** @type {Manifest} */ (JSON.parse(readFileSync(file, 'utf8')))
  return Object.entries(manifest.exports).flatMap(([subpath, target]) => {
    const source = typeof target === 'object' && target['@adk-stream-protocol/source']
    return source
      ? [{ name: `${name}${subpath.slice(1)}`, source: `${name}/${source.slice(2)}` }]
      : []
  })
})

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

// Read by typedoc.
// oxlint-disable-next-line import/no-default-export
export default {
  name: 'API',
  entryPoints: modules.map(({ source }) => `../packages/${source}`),
  tsconfig: 'tsconfig.json',
  plugin: ['typedoc-plugin-markdown', nameModules],
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
