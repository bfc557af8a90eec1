import { useAdkLabels } from '../provider.tsx'

/** Props of `FileView`. */
export interface FileViewProps {
  readonly url: string
  readonly mediaType: string
  readonly filename?: string | undefined
}

/** Shows an image, or a download link for any other file. Shows nothing for a URL that is not `data:`, `blob:` or `http(s):`. */
export function FileView({ url, mediaType, filename }: FileViewProps) {
  const { message } = useAdkLabels()
  if (!isSafeFileUrl(url)) return null
  if (mediaType.startsWith('image/'))
    return <img className="adk-picture" src={url} alt={filename ?? message.image} />
  return (
    <a className="adk-attachment" href={url} download={filename ?? true}>
      {filename ?? `${message.file} (${mediaType})`}
    </a>
  )
}

/** The URL may come from the model. A `javascript:` URL must never reach the page. */
function isSafeFileUrl(url: string): boolean {
  return /^(?:data:|blob:|https?:\/\/)/i.test(url)
}
