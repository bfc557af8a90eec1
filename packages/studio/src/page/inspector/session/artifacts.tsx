import { Download } from 'lucide-react'
import { useEffect, useState } from 'react'

import { ScrolledText } from '../parts.tsx'
import { useSessionLabels } from './labels.ts'
import {
  type Artifact,
  type ArtifactContent,
  artifactUrl,
  readArtifact,
  readArtifacts,
} from './session-api.ts'

interface ArtifactsProps {
  readonly chatId: string
  /** The list is read again when it changes. */
  readonly version: string
}

/** The artifacts of the chat. One that is opened shows its newest version, or the chosen one. */
export function Artifacts({ chatId, version }: ArtifactsProps) {
  const labels = useSessionLabels()
  const [artifacts, setArtifacts] = useState<readonly Artifact[] | undefined>([])
  useEffect(() => {
    let isCurrent = true
    const load = async (): Promise<void> => {
      const next = await readArtifacts(chatId)
      if (isCurrent) setArtifacts(next)
    }
    void load()
    return () => {
      isCurrent = false
    }
    // oxlint-disable-next-line react/exhaustive-effect-dependencies -- another version has other artifacts
  }, [chatId, version])
  return (
    <section className="session-artifacts">
      <h3>{labels.artifacts}</h3>
      {artifacts === undefined && <p role="alert">{labels.unreadableArtifacts}</p>}
      {artifacts?.length === 0 && <p className="inspector-empty">{labels.noArtifacts}</p>}
      {artifacts?.map((artifact) => (
        <ArtifactView key={artifact.name} {...{ chatId, artifact }} />
      ))}
    </section>
  )
}

interface ArtifactViewProps {
  readonly chatId: string
  readonly artifact: Artifact
}

function ArtifactView({ chatId, artifact: { name, versions } }: ArtifactViewProps) {
  const labels = useSessionLabels()
  const [isOpen, setOpen] = useState(false)
  const [chosen, choose] = useState<number>()
  const version = chosen ?? versions[0] ?? 0
  const url = artifactUrl(chatId, name, version)
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        <span dir="auto">{name}</span> <small>{labels.versions(versions.length)}</small>
      </summary>
      {isOpen && (
        <>
          <label>
            {labels.version}{' '}
            <select value={version} onChange={({ target }) => choose(Number(target.value))}>
              {versions.map((each) => (
                <option key={each}>{each}</option>
              ))}
            </select>
          </label>
          <a className="inspector-more" href={url} download={toFileName(name)}>
            <Download size={16} aria-hidden="true" /> {labels.download}
          </a>
          <Content key={url} {...{ url, name }} />
        </>
      )}
    </details>
  )
}

/** The browser replaces what is not allowed in the name of a file. */
function toFileName(name: string): string {
  return name.replace(/^user:/, '').replaceAll(/[/\\]/g, '_')
}

interface ContentProps {
  readonly url: string
  readonly name: string
}

function Content({ url, name }: ContentProps) {
  const labels = useSessionLabels()
  const [content, setContent] = useState<ArtifactContent | 'loading' | 'failed'>('loading')
  useEffect(() => {
    let isCurrent = true
    const load = async (): Promise<void> => {
      const next = await readArtifact(url)
      if (isCurrent) setContent(next ?? 'failed')
    }
    void load()
    return () => {
      isCurrent = false
    }
  }, [url])
  if (content === 'loading') return <p role="status">{labels.loadingArtifact}</p>
  if (content === 'failed') return <p role="alert">{labels.unreadableArtifact}</p>
  switch (content.type) {
    case 'text':
      return <ScrolledText>{content.text}</ScrolledText>
    case 'image':
      return <img src={url} alt={name} />
    case 'file':
      return <p className="inspector-empty">{labels.onlyDownload}</p>
  }
}
