# fish completion for cframe(1)

complete -c cframe -n __fish_use_subcommand -f -a info -d 'Show what a frame says about itself'
complete -c cframe -n __fish_use_subcommand -f -a cat -d 'Write the plain bytes of a frame'
complete -c cframe -n __fish_use_subcommand -f -a verify -d 'Decode everything and report damage'
complete -c cframe -n __fish_use_subcommand -s V -l version -d 'Print the version'
complete -c cframe -s h -l help -d 'Print the options'

complete -c cframe -n '__fish_seen_subcommand_from info' -l json -d 'As JSON'
complete -c cframe -n '__fish_seen_subcommand_from info' -l all -d 'Read the header of every chunk'
complete -c cframe -n '__fish_seen_subcommand_from info' -x -l offset -d 'Where the frame starts inside the file'

complete -c cframe -n '__fish_seen_subcommand_from cat' -x -l offset -d 'First plain byte'
complete -c cframe -n '__fish_seen_subcommand_from cat' -x -l length -d 'Plain bytes at most'
complete -c cframe -n '__fish_seen_subcommand_from cat' -x -l frame-offset -d 'Where the frame starts inside the file'
complete -c cframe -n '__fish_seen_subcommand_from cat' -x -l b2nd -a 'npy flat chunks' -d 'What an n-d array is written as'
complete -c cframe -n '__fish_seen_subcommand_from cat' -x -l workers -d 'Decoding threads'

complete -c cframe -n '__fish_seen_subcommand_from verify' -l json -d 'Report as JSON'
complete -c cframe -n '__fish_seen_subcommand_from verify' -s q -l quiet -d 'Print only what is faulty'
complete -c cframe -n '__fish_seen_subcommand_from verify' -x -l offset -d 'Where the frame starts inside the file'
complete -c cframe -n '__fish_seen_subcommand_from verify' -x -l workers -d 'Decoding threads'
