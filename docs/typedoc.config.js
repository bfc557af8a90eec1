import { readFileSync } from 'node:fs'

const SOURCE = '@adk-stream-protocol/source'
const PACKAGES = ['adk-stream-protocol', 'gemini-emulator']

/** What users import, with the source that it is. */
const modules = PACKAGES.flatMap((name) => {
  const manifest = new URL(`../packages/${name}/package.json`, import.meta.url)
  return Object.entries(JSON.parse(readFileSync(manifest, 'utf8')).exports)
    .filter(([, target]) => typeof target === 'object')
    .map(([subpath, target]) => ({
      name: `${name}${subpath.slice(1)}`,
      source: `${name}/${target[SOURCE].slice(2)}`,
    }))
})

/** Calls modules what users call them; typedoc calls them by their files. */
function nameModules({ converter }) {
  const names = new Map(
    modules.map(({ name, source }) => [source.replace(/(?:\/index)?\.tsx?$/, ''), name]),
  )
  converter.on('createDeclaration', (_, reflection) => {
    const name = reflection.parent?.isProject() === true && names.get(reflection.name)
    if (name) reflection.name = name
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
